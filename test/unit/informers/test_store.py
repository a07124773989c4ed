"""Invariants I23 to I30 as far as the store alone keeps them."""

from collections.abc import Iterable

import pytest

from fakes.scripted_server import pod, unreadable
from mpiop.informers.store import Notification, Store
from mpiop.kube.objects import Key, Object, is_at_least, labels_of

A, B, C = Key("ns", "a"), Key("ns", "b"), Key("ns", "c")


def by_app(obj: Object) -> Iterable[str]:
    """Index under each part of the label `app`, such as `x` and `y` for `x.y`."""
    app = labels_of(obj).get("app")
    return app.split(".") if app else ()


def labelled(name: str, version: int, app: str) -> Object:
    return pod(name, version, labels={"app": app})


def changes(notifications: Iterable[Notification]) -> list[tuple[str, str, str]]:
    """Return key, old version and new version of each."""
    return [
        (
            notification.key.name,
            notification.old["metadata"].get("resourceVersion", "") if notification.old else "",
            notification.new["metadata"].get("resourceVersion", "") if notification.new else "",
        )
        for notification in notifications
    ]


def test_I23_what_vanished_in_a_gap_is_notified_with_its_last_known_state() -> None:
    store = Store()
    store.replace([pod("a", 1), pod("b", 2)], "10")
    (deletion,) = store.replace([pod("b", 2)], "20")
    assert deletion == Notification(pod("a", 1), None)
    assert deletion.key == A


def test_I23_a_deletion_has_the_state_in_which_the_object_was_deleted() -> None:
    store = Store()
    store.put(pod("a", 1, phase="Running"))
    assert store.remove(pod("a", 5, phase="Failed")) == Notification(pod("a", 5, phase="Failed"), None)
    assert store.remove(pod("a", 5)) is None


def test_I24_a_replace_gives_one_change_a_key_deletes_first() -> None:
    store = Store()
    store.replace([pod("same", 1), pod("gone", 2), pod("changed", 3)], "10")
    reported = store.replace([pod("new", 11), pod("changed", 12), pod("same", 1)], "20")
    assert changes(reported) == [("gone", "2", ""), ("new", "", "11"), ("changed", "3", "12")]
    assert store.replace([pod("new", 11), pod("changed", 12), pod("same", 1)], "30") == []


def test_I24_a_key_given_twice_counts_once() -> None:
    store = Store()
    assert changes(store.replace([pod("a", 1), pod("a", 2)], "10")) == [("a", "", "2")]


def test_I24_a_replace_may_go_back_when_the_server_did() -> None:
    store = Store()
    store.replace([pod("a", 100)], "100")
    assert changes(store.replace([pod("a", 7)], "10")) == [("a", "100", "7")]
    assert store.resource_version == "10"


@pytest.mark.parametrize("version", [15, 5, 3], ids=["a later version", "the same version, when etcd was set back", "a lower version"])
@pytest.mark.parametrize("through", ["replace", "put"])
def test_I25_a_delete_and_recreation_in_a_gap_is_one_update_with_a_new_uid(through: str, version: int) -> None:
    store = Store()
    store.replace([pod("a", 5, uid="first")], "10")
    successor = pod("a", version, uid="second")
    reported = store.put(successor) if through == "put" else store.replace([successor], "20")[0]
    assert reported == Notification(pod("a", 5, uid="first"), successor)
    assert reported.is_replacement
    assert not Notification(None, successor).is_replacement
    assert not Notification(pod("a", 1), pod("a", 2)).is_replacement


def test_I27_an_event_that_is_known_or_outdated_is_no_change() -> None:
    store = Store()
    store.put(pod("a", 10, phase="Running"), "10")
    assert store.put(pod("a", 10, phase="Running"), "10") is None
    assert store.put(pod("a", 9, phase="Pending"), "11") is None
    assert store.get(A) == pod("a", 10, phase="Running")
    assert store.resource_version == "11"


def test_I27_versions_that_cannot_be_compared_count_as_newer() -> None:
    store = Store()
    store.put(pod("a", "x"))
    assert store.put(pod("a", "")) is not None
    assert store.put(pod("a", "")) is not None


def test_I28_an_update_that_changes_no_value_keeps_its_place() -> None:
    store = Store({"app": by_app})
    store.replace([labelled("a", 1, "x"), labelled("b", 2, "x")], "10")
    store.put(labelled("a", 11, "x"))
    assert store.by_index("app", "x") == [labelled("a", 11, "x"), labelled("b", 2, "x")]


def test_I28_an_index_added_later_holds_what_is_there() -> None:
    store = Store()
    store.put(labelled("a", 1, "x"))
    store.add_indexers({"app": by_app})
    store.add_indexers({"app": by_app})
    assert store.by_index("app", "x") == [labelled("a", 1, "x")]
    assert list(store.indexers) == ["app"]
    with pytest.raises(ValueError, match="index 'app' exists"):
        store.add_indexers({"app": lambda _obj: ["x"]})
    with pytest.raises(KeyError):
        store.by_index("nothing", "x")


def test_I28_an_object_that_cannot_be_indexed_is_stored_all_the_same() -> None:
    def fragile(obj: Object) -> Iterable[str]:
        return [obj["metadata"]["labels"]["app"]]

    store = Store({"app": fragile})
    store.replace([pod("a", 1), labelled("b", 2, "x")], "10")
    store.put(pod("b", 11))
    store.put(labelled("a", 12, "x"))
    assert store.by_index("app", "x") == [labelled("a", 12, "x")]
    assert sorted(store.keys()) == [A, B]
    store.replace([], "20")
    assert len(store) == 0


def test_I29_the_store_knows_the_version_that_it_is_synchronised_to() -> None:
    store = Store()
    assert store.resource_version == ""
    store.replace([pod("a", 1)], "10")
    assert store.resource_version == "10"
    store.put(pod("a", 11), "11")
    assert store.resource_version == "11"
    store.put(pod("b", 12), "")
    assert store.resource_version == "11"
    store.remove(pod("b", 13), "13")
    assert store.resource_version == "13"
    store.advance("20")
    assert store.resource_version == "20"
    store.advance("")
    assert store.resource_version == "20"


def test_I30_values_and_keys_are_those_of_the_moment() -> None:
    store = Store()
    store.replace([pod("a", 1), pod("b", 2)], "10")
    values = store.values()
    store.replace([], "20")
    assert values == [pod("a", 1), pod("b", 2)]
    assert (store.get(A), len(store), list(store.keys())) == (None, 0, [])


def test_a_notification_without_objects_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an old or a new object"):
        _ = Notification(None, None).key


@pytest.mark.parametrize(
    ("have", "want", "expected"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("10", "10", True),
        ("x", "x", True),
        ("", "", True),
        ("", "1", None),
        ("x", "1", None),
        ("1", "", None),
    ],
)
def test_versions_are_compared_as_integers_where_they_are(have: str, want: str, expected: object) -> None:
    assert is_at_least(have, want) is expected


def test_an_object_that_becomes_unreadable_keeps_its_last_state_and_is_not_deleted() -> None:
    store = Store({"app": by_app})
    store.replace([labelled("a", 1, "x"), pod("b", 1)], "10")
    a, b, c = unreadable("a", 11), unreadable("b", 12), unreadable("c", 13)
    assert store.put(a, "11") == Notification(labelled("a", 1, "x"), labelled("a", 1, "x"), unreadable=a)
    assert store.replace([a, b, c], "20") == [Notification(pod("b", 1), pod("b", 1), unreadable=b), Notification(None, None, unreadable=c)]
    assert dict(store.unreadable) == {A: a, B: b, C: c}
    assert (store.get(A), store.get(C), store.resource_version) == (labelled("a", 1, "x"), None, "20")
    assert store.by_index("app", "x") == [labelled("a", 1, "x")]
    assert store.put(a) is None
    assert store.put(unreadable("a", 5)) is None
    assert store.put(pod("a", 10)) is None
    assert store.replace([a, b, c], "30") == []


def test_an_unreadable_object_is_notified_when_it_is_readable_again_or_gone() -> None:
    store = Store()
    store.replace([pod("a", 1), unreadable("b", 2), unreadable("c", 3)], "10")
    mark, other = unreadable("a", 1), unreadable("c", 3)
    store.put(mark)
    assert store.put(pod("a", 1)) == Notification(pod("a", 1), pod("a", 1), unreadable=mark)
    assert store.put(pod("b", 11)) == Notification(None, pod("b", 11), unreadable=unreadable("b", 2))
    assert store.remove(unreadable("c", 12), "12") == Notification(None, None, unreadable=other)
    assert store.remove(unreadable("a", 13), "13") == Notification(pod("a", 1), None)
    assert store.remove(unreadable("a", 13), "13") is None
    assert store.put(unreadable("b", 14)) is not None
    (gone,) = store.replace([], "20")
    assert gone == Notification(pod("b", 11), None, unreadable=unreadable("b", 14))
    assert not store.unreadable
    assert gone.key == B
