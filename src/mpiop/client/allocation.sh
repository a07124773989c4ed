#!/bin/sh
# Holds the workers of an allocation and runs its steps, in the launcher (docs/adr/0044-allocations.md).
#   hold OPTIONS TAGS    the launcher's own process: counts slots, ends the allocation
#   step … -- PROGRAM    runs mpirun on free slots
#   input TOKEN          passes standard input on to a step that runs
#   shell                opens a shell; history lists the steps
#   receive              takes files for the folder of uploads from the client
#   client MARK VERB …   runs `history` or `output NUMBER [follow]`, which prints what a step has printed, and marks the end
# For dash, busybox and bash. Of other programs it needs cat, chmod, date, dd, grep, mkdir, mkfifo, mv, rm, sleep, tee, tr, tty and wc;
# for uploads also find, rmdir, sed, sha256sum, sort, tar and uniq.
set -fu
home=${MPIOP_ALLOCATION:-/tmp/mpiop}
hostfile=${OMPI_MCA_orte_default_hostfile:-${HYDRA_HOST_FILE:-${I_MPI_HYDRA_HOST_FILE:-/etc/mpi/hostfile}}}
message=${MPIOP_MESSAGE:-/dev/termination-log}
self=$$
lost_seconds=${MPIOP_LOST_SECONDS:-30}
kept_steps=${MPIOP_KEPT_STEPS:-200} kept_outputs=20

# Sets `now` to the seconds since the machine started.
read_clock() {
    read -r now rest </proc/uptime
    now=${now%%.*}
}

# Sets `start`, by which a process differs from a later one with its number; fails if the process has ended.
find_start() {
    start='' stat=''
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    parse_stat ${stat##*) }
}
parse_stat() {
    [ "$1" != Z ] && parent=$2 start=${20}
}
is_alive() {
    find_start "$1" && [ "$start" = "$2" ]
}

nap() { sleep "${1:-0.1}" 2>/dev/null || sleep 1; }

# Sets `words` to a duration such as 1h30m.
in_words() {
    words=
    [ "$1" -lt 3600 ] || words=$(($1 / 3600))h
    [ $(($1 / 60 % 60)) = 0 ] || words=$words$(($1 / 60 % 60))m
    [ $(($1 % 60)) = 0 ] && [ -n "$words" ] || words=$words$(($1 % 60))s
}

# Opened for both directions, the pipe never blocks, not even if the holder has ended.
request() { echo "$*" 1<>"$home/requests"; }

# ---- The holder: one process that takes one request after the other, so slots need no lock.

hold() {
    umask 077
    idle=${MPIOP_IDLE:-0} limit=${MPIOP_TIME_LIMIT:-0} number=0 active='' owner='' queue='' shells='' warned_idle='' warned_limit=''
    mkdir -p "$home/asks" "$home/steps" && mkfifo "$home/requests" || exit 1
    printf '%s' "$1" >"$home/options"
    printf '%s' "$2" >"$home/tags"
    : >"$home/seen"
    exec 3<>"$home/requests"
    trap 'finish 143 "its launcher was asked to end, as by a suspension, a preemption or a deletion"' TERM INT HUP
    read_clock
    begun=$now last=$now
    echo "allocation is ready"
    wake
    trap : CHLD # which interrupts `read`
    while :; do
        # As the first process of the container it inherits orphans; `jobs` collects those that have ended.
        jobs >/dev/null 2>&1
        read -r event first second third <&3 || continue
        case $event in
        ask) bury_dead && { consider "$first" || queue="$queue $first"; } ;;
        end) end_step "$first" "$second" ;;
        lock) lend "$first" ;;
        free) [ "$owner" != "$first" ] || owner='' ;;
        shell) read_clock && shells="$shells $first:$second:$third" last=$now ;;
        tick) bury_dead && serve && wake ;;
        esac
    done
}

# Sets `hosts` to their number, and of each its name, slots and free slots.
read_hosts() {
    hosts=0 is_open_mpi=''
    while read -r line || [ -n "$line" ]; do
        case $line in
        '') continue ;;
        *' slots='*) host=${line%% *} count=${line##*slots=} is_open_mpi=1 ;;
        *:*) host=${line%:*} count=${line##*:} ;;
        *) host=$line count=1 ;;
        esac
        case $count in '' | 0* | *[!0-9]* | ??????????*) count=0 ;; esac # not a number
        eval "name_$hosts=\$host slots_$hosts=\$count free_$hosts=\$count"
        hosts=$((hosts + 1))
    done <"$hostfile"
    for each in $active; do
        eval "place=\$place_$each"
        for pair in $place; do
            index=${pair%:*}
            eval "free_$index=\$((\${free_$index:-0} - ${pair#*:}))"
        done
    done
}

# Chooses slots for an ask: sets `place` to pairs of host and slots, or `refusal`, or `left` to what is missing and `obstacle`.
choose() {
    place='' refusal='' left=$need total=0 free=0 obstacle='' known=$hosts
    chosen=$(echo "$wanted" | tr , ' ')
    for index in $chosen; do
        case $index in *[!0-9]* | 0?*) refusal="--hosts $wanted: a host is a number from 0 to $((hosts - 1))" && return ;; esac
        [ "$index" -lt "$hosts" ] || { refusal="there is no host $index: the hosts are 0 to $((hosts - 1))" && return; }
    done
    index=0
    while [ "$index" -lt "$known" ]; do
        case " $chosen " in '  ' | *" $index "*) eval "total=\$((total + slots_$index))" ;; esac
        index=$((index + 1))
    done
    if [ "$left" = 0 ]; then
        [ -n "$chosen" ] && left=$total || left=${MPIOP_RANKS:-$total}
        need=$left
    fi
    [ "$need" != 0 ] || { refusal="${wanted:+hosts $wanted have no slots}" && refusal=${refusal:-the allocation has no slots} && return; }
    [ "$need" -le "$total" ] || { refusal="$need slots are wanted, and ${chosen:+these hosts}${chosen:-the allocation} has $total" && refuse_hosts && return; }
    index=0
    while [ "$index" -lt "$known" ]; do
        case " $chosen " in
        '  ' | *" $index "*)
            eval "room=\$free_$index"
            [ "$overlap" = 0 ] || eval "room=\$slots_$index"
            [ "$room" -ge 0 ] || room=0
            free=$((free + room))
            [ "$room" -le "$left" ] || room=$left
            [ "$room" = 0 ] || place="$place $index:$room"
            left=$((left - room))
            ;;
        esac
        index=$((index + 1))
    done
    [ "$left" = 0 ] || obstacle="$need slots are wanted, and $free of $total are free${active:+; running:}${active:+ step$active}"
}
refuse_hosts() {
    [ -z "$chosen" ] || refusal="$need slots are wanted, and hosts $wanted have $total"
}

# Answers an ask; fails if it must wait.
consider() {
    asked=$home/asks/$1
    { read -r pid began need overlap waits wanted <"$asked/request"; } 2>/dev/null || return 0
    is_alive "$pid" "$began" || { rm -rf "$asked" && return 0; }
    read_hosts
    choose
    if [ -z "$refusal" ] && [ "$left" != 0 ]; then
        [ "$waits" = 0 ] || { [ -e "$asked/waits" ] || answer "waits $obstacle" && : >"$asked/waits" && return 1; }
        refusal=$obstacle
    fi
    [ -z "$refusal" ] || { answer "refused $refusal" && return 0; }
    number=$((number + 1))
    forget $((number - kept_steps)) ""
    forget $((number - kept_outputs)) /output
    mkdir "$home/steps/$number"
    for pair in $place; do
        index=${pair%:*}
        eval "host=\$name_$index"
        [ -n "$is_open_mpi" ] && echo "$host slots=${pair#*:}" || echo "$host:${pair#*:}"
    done >"$home/steps/$number/hostfile"
    echo "$need$place" >"$home/steps/$number/place"
    eval "pid_$number=\$pid start_$number=\$began place_$number=\$place"
    [ "$overlap" = 0 ] || eval "place_$number="
    active="$active $number"
    echo "step $number: $need ranks on hosts$place"
    answer "runs $number"
}

# The folder of uploads has one owner at a time, until it frees it or ends.
lend() {
    word=yours
    if [ -n "$owner" ] && is_alive "${owner%-*}" "${owner#*-}"; then word=busy; else owner=$1; fi
    { echo "$word" 1<>"$home/asks/$1-lock"; } 2>/dev/null || :
}

forget() {
    case " $active " in *" $1 "*) ;; *) [ ! -e "$home/steps/$1$2" ] || rm -rf "$home/steps/$1$2" ;; esac
}

# The step has opened the pipe before it asked; opened for both directions, it never blocks the holder.
answer() { { echo "$1" 1<>"$asked/answer"; } 2>/dev/null || :; }

end_step() {
    case " $active " in *" $1 "*) ;; *) return ;; esac
    rest=
    for each in $active; do [ "$each" = "$1" ] || rest="$rest $each"; done
    active=$rest
    read_clock
    last=$now
    echo "step $1: exit code $2"
    serve
}

serve() {
    waiting=$queue queue=
    for each_ask in $waiting; do consider "$each_ask" || queue="$queue $each_ask"; done
}

# A step that was killed cannot end its mpirun.
bury_dead() {
    for each_step in $active; do
        eval "pid=\$pid_$each_step began=\$start_$each_step"
        if ! is_alive "$pid" "$began" && [ ! -e "$home/steps/$each_step/buried" ]; then
            : >"$home/steps/$each_step/buried"
            (
                trap - TERM INT HUP
                bury "$each_step"
            ) &
        fi
    done
}

is_shell_used() {
    rest=$shells shells='' is_used=''
    for each in $rest; do
        pid=${each%%:*} began=${each#*:}
        terminal=${began#*:} began=${began%%:*}
        is_alive "$pid" "$began" || continue
        shells="$shells $each"
        [ "$terminal" -nt "$home/seen" ] && is_used=1
    done
    [ -n "$is_used" ]
}

# Writes to the terminals of all shells. In the background, because a terminal can be stopped. Sets `writers`.
warn() {
    echo "$1"
    writers=
    for each in $shells; do
        { printf '\r\nmpiop: %s\r\n' "$1" >"${each##*:}" && : >"$home/seen"; } 2>/dev/null &
        writers="$writers $!"
    done
}

# Ends all shells as when their terminals are closed. What is in a terminal when the container ends is lost, so each shell ends before.
hang_up() {
    wait_for 20 $writers
    pids=
    for each in $shells; do
        pid=${each%%:*} began=${each#*:}
        is_alive "$pid" "${began%%:*}" && kill -HUP "$pid" && pids="$pids $pid"
    done
    wait_for 30 $pids
}

# Waits until the processes have ended, for so many naps at most. Sets `rest` to those that have not.
wait_for() {
    tries=$1 && shift
    rest=$*
    while :; do
        found=
        for each in $rest; do ! find_start "$each" || found="$found $each"; done
        rest=$found
        [ -n "$rest" ] && [ "$tries" -gt 0 ] || return 0
        nap
        tries=$((tries - 1))
    done
}

# Kills the processes that have not ended after so many naps.
end_after() {
    wait_for "$@"
    [ -z "$rest" ] || kill -KILL $rest 2>/dev/null
}

# Ends the allocation if it is time, warns before, and sets the next alarm. A request never makes the next end earlier.
wake() {
    read_clock
    next=
    if [ "$limit" != 0 ]; then
        left=$((begun + limit - now)) early=300
        [ "$limit" -ge 1200 ] || early=$((limit / 4))
        in_words "$limit"
        [ "$left" -gt 0 ] || finish 0 "time limit: it ran for $words"
        if [ "$left" -gt "$early" ]; then next=$((left - early)); else
            next=$left
            [ -n "$warned_limit" ] || { in_words "$left" && warn "the allocation ends in $words: its time limit" && warned_limit=1; }
        fi
    fi
    if [ "$idle" != 0 ]; then
        if is_shell_used || [ -n "$active$queue" ]; then last=$now; fi
        : >"$home/seen"
        left=$((last + idle - now)) early=60
        [ "$idle" -ge 300 ] || early=$((idle / 5))
        in_words "$idle"
        [ "$left" -gt 0 ] || finish 0 "idle: no step ran and nobody typed in a shell for $words"
        if [ "$left" -gt "$early" ]; then soon=$((left - early)); else
            soon=$left
            [ "$warned_idle" = "$last" ] || { in_words "$left" && warn "the allocation is idle, and ends in $words" && warned_idle=$last; }
        fi
        if [ -n "$shells" ] && [ "$soon" -gt $((idle / 10 + 1)) ]; then soon=$((idle / 10 + 1)); fi
        if [ -z "$next" ] || [ "$soon" -lt "$next" ]; then next=$soon; fi
    fi
    [ -z "$next" ] || (
        trap - TERM INT HUP
        sleep "$next"
        echo tick >&3
    ) &
}

finish() {
    trap '' TERM INT HUP
    warn "the allocation ends: $2"
    { echo "$2" >>"$message"; } 2>/dev/null
    for each in $active; do
        echo "the allocation ended: $2" >"$home/steps/$each/why"
        eval "kill -TERM \$pid_$each" 2>/dev/null
    done
    read_clock
    until=$((now + 20)) left=1
    while [ -n "$left" ] && [ "$now" -lt "$until" ]; do
        left=
        for each in $active; do
            eval "pid=\$pid_$each began=\$start_$each"
            ! is_alive "$pid" "$began" || left=1
        done
        [ -z "$left" ] || nap
        read_clock
    done
    hang_up
    exit "$1"
}

# ---- A step.

fail() {
    report refused "$*"
    exit 2
}

# Reports to the client, which knows the token of its step, or to the user of a shell.
report() {
    if [ -n "$token" ]; then
        echo "mpiop:$token:$*" >&2
    else
        case $1 in runs | ended) ;; waits) shift && echo "mpiop step: waits: $*" >&2 ;; *) shift && echo "mpiop step: $*" >&2 ;; esac
    fi
}

# Puts a text into quotes, for `eval`. Sets `quoted`.
quote() {
    quoted='' rest=$1
    while :; do
        case $rest in *\'*) ;; *) break ;; esac
        quoted="$quoted${rest%%\'*}'\\''" rest=${rest#*\'}
    done
    quoted="'$quoted$rest'"
}

step() {
    token='' need=0 wanted='' overlap=0 waits=1 has_input='' size='' is_tagged='' exports='' assignments='' words='' mpirun='' why='' problem='' is_uploaded='' build='' number='' reader='' watchdog='' signal=''
    while [ $# -gt 0 ]; do
        case $1 in
        -n | -np | --ranks | --hosts | -e | --env | --mpirun-args | --build | --token | --content) [ $# -gt 1 ] || fail "$1 needs a value" ;;
        esac
        case $1 in
        -n | -np | --ranks | --content)
            case $2 in '' | *[!0-9]* | 0* | ??????????*) fail "$1 $2: a number is expected" ;; esac
            [ "$1" = --content ] && size=$2 || need=$2
            shift
            ;;
        --hosts)
            case $2 in '' | *[!0-9,]*) fail "--hosts $2: write numbers with commas, such as 0,1" ;; esac
            wanted=$2 && shift
            ;;
        -e | --env)
            case ${2%%=*} in '' | [0-9]* | *[!A-Za-z0-9_]*) fail "$1 $2: write NAME=VALUE" ;; esac
            case $2 in *=*) ;; *) fail "$1 $2: write NAME=VALUE" ;; esac
            case $2 in MPIOP_ARRAY_INDEX=*) ;; MPIOP_*=* | *_default_hostfile=* | HYDRA_HOST_FILE=* | I_MPI_HYDRA_HOST_FILE=* | I_MPI_PERHOST=*) fail "$1 ${2%%=*}: steps set this variable" ;; esac
            quote "${2#*=}"
            exports="$exports ${2%%=*}" assignments="$assignments ${2%%=*}=$quoted" && shift
            ;;
        --mpirun-args) words="$words $2" && shift ;;
        --upload) is_uploaded=1 ;;
        --build) is_uploaded=1 build=$2 && shift ;;
        --token) token=$2 && shift ;;
        --overlap) overlap=1 ;;
        --no-wait) waits=0 ;;
        --input) has_input=1 ;;
        --tag) is_tagged=1 ;;
        --) shift && break ;;
        -*) fail "$1 is not an option of step" ;;
        *) break ;;
        esac
        shift
    done
    [ $# -gt 0 ] || fail "there is no program to run"
    (eval "${assignments:+export $assignments}" && command -v mpirun >/dev/null) || fail "the image has no mpirun in its PATH"
    [ -p "$home/requests" ] || fail "there is no allocation in this Pod"
    trap 'stop interrupted 130' INT
    trap 'stop "" 143' TERM
    trap 'stop "the terminal was closed" 129' HUP
    trap : PIPE
    exec 4<&0
    find_start "$self"
    own=$start ask=$self-$start asked=$home/asks/$ask
    mkdir "$asked" && mkfifo "$asked/answer" || fail "cannot write to $home"
    exec 5<>"$asked/answer"
    echo "$self $start $need $overlap $waits $wanted" >"$asked/request"
    [ -z "$token" ] || listen
    [ -n "$size" ] || request ask "$ask" # otherwise the client lets it ask after the bytes
    while read -r answer text <&5; do
        case $answer in
        waits) report waits "$text" ;;
        refused)
            report refused "$text"
            quit 1
            ;;
        runs) break ;;
        esac
    done
    number=$text dir=$home/steps/$text
    [ -z "$size" ] || exec 3<"$asked/content"
    rm -rf "$asked"
    run "$@"
}

# Watches the connection to the client from other processes, which remain if this one is killed.
listen() {
    (
        trap - INT TERM HUP
        [ -z "$size" ] || receive_content
        while read -r word <&4; do
            case $word in
            ask) request ask "$ask" ;;
            interrupt) kill -INT "$self" ;;
            end\ *) echo "${word#end }" >"$home/why-$self" && kill -TERM "$self" ;;
            *)
                : >"$home/beat-$self"
                is_alive "$self" "$own" || break
                ;;
            esac
        done
        lose
    ) >/dev/null 2>&1 5>&- &
    reader=$!
    : >"$home/beat-$self"
    (
        trap 'kill $nap; exit' TERM
        trap - INT HUP
        received=
        while :; do
            sleep "$lost_seconds" &
            nap=$!
            wait "$nap"
            has_received || [ -e "$home/beat-$self" ] || break
            rm -f "$home/beat-$self"
            release
        done
        lose
    ) >/dev/null 2>&1 4<&- 5>&- &
    watchdog=$!
}
# Stores just so many bytes; orders follow. The blocks are small, because each one that is stored shows that the client lives.
receive_content() {
    trap 'kill "$dd"; exit' TERM
    count=$(((size - 1) / 4096))
    store 4096 "$count" && store $((size - 4096 * count)) 1 || {
        echo "the launcher cannot store the bytes for rank 0: its disk is full, or its dd cannot read full blocks" >"$home/why-$self"
        kill -TERM "$self"
    }
    trap - TERM
}
store() {
    dd bs="$1" count="$2" iflag=fullblock <&4 >>"$asked/content" &
    dd=$!
    wait "$dd"
}
# Whether more bytes have arrived than at the last time.
has_received() {
    before=$received
    received=$(wc -c <"$asked/content")
    [ "${received:-0}" -gt "${before:-0}" ]
}
# Ends the standard input of an mpirun whose daemons have all ended: that of MPICH may wait for a line of it for ever.
release() (
    set +f
    for dir in "$home"/steps/*; do
        { read -r pid <"$dir/of" && [ "$pid" = "$ask" ] && read -r mpirun start <"$dir/mpirun"; } 2>/dev/null || continue
        has_lost_daemons && end_input
    done
)
# Whether mpirun has children, and all of them have ended.
has_lost_daemons() {
    is_any=1
    for each in /proc/[0-9]*; do
        { read -r stat <"$each/stat"; } 2>/dev/null || continue
        set -- ${stat##*) }
        [ "$2" = "$mpirun" ] || continue
        [ "$1" = Z ] || return 1
        is_any=0
    done
    return "$is_any"
}
lose() {
    echo "the connection to the client was lost" >"$home/why-$self"
    is_alive "$self" "$own" && kill -TERM "$self" && return
    rm -rf "$home/beat-$self" "$home/why-$self" "$asked"
    set +f
    for each in "$home"/steps/*; do
        [ -e "$each/of" ] && [ ! -e "$each/ended" ] && read -r pid <"$each/of" && [ "$pid" = "$ask" ] && bury "${each##*/}"
    done
}

# In a trap: ends mpirun, or the step if that waits.
stop() {
    signal=1
    [ -z "$why" ] || return 0
    why=$1 stopped=$2
    [ ! -e "$home/why-$self" ] || read -r why <"$home/why-$self"
    [ -z "$number" ] || [ ! -e "$dir/why" ] || read -r why <"$dir/why"
    why=${why:-ended by a signal}
    if [ -n "$mpirun" ]; then
        end_mpirun "$number" >/dev/null 2>&1 5>&- 9>&- &
    elif [ -z "$number" ]; then
        rm -rf "$asked"
        report ended "$stopped $why"
        quit "$stopped"
    fi
}

quit() {
    [ -z "$reader" ] || kill "$reader" "$watchdog" 2>/dev/null
    rm -rf "$home/beat-$self" "$home/why-$self" "$asked"
    exit "$1"
}

run() {
    open_output # before MPIOP_STEP is exported: what has it is killed at the end
    export MPIOP_STEP="$number"
    for variable in OMPI_MCA_orte_default_hostfile PRTE_MCA_prte_default_hostfile HYDRA_HOST_FILE I_MPI_HYDRA_HOST_FILE; do
        eval "[ -z \"\${$variable:-}\" ] || export $variable=\"\$dir/hostfile\""
    done
    unset I_MPI_PERHOST
    read -r ranks place <"$dir/place"
    echo "$ask" >"$dir/of"
    echo "$*" >"$dir/command"
    date +%s >"$dir/started"
    eval "set -- $words \"\$@\""
    if [ -n "${MPIOP_EXPORT_OPTION:-}" ]; then
        for name in MPIOP_STEP $exports; do set -- "$MPIOP_EXPORT_OPTION" "$name" "$@"; done
    fi
    eval "set -- $(cat "$home/options") \"\$@\""
    [ -z "$is_uploaded" ] || [ "$1" != -wdir ] || shift 2
    [ -z "$is_tagged" ] || eval "set -- $(cat "$home/tags") \"\$@\""
    # With its variable alone, Intel MPI fills the first hosts and ignores how many slots they have.
    [ -z "${I_MPI_HYDRA_HOST_FILE:-}" ] || set -- -machinefile "$dir/hostfile" "$@"
    if [ -n "$has_input" ]; then
        input=$home/input-$token
        echo "$token" >"$dir/input"
        mkfifo "$input"
    fi
    report runs "$number $place"
    if [ -n "$size" ]; then
        launch "$@" <&3 &
    elif [ -n "$has_input" ]; then
        launch "$@" <"$input" &
    elif [ -n "$token" ]; then
        launch "$@" </dev/null &
    else
        launch "$@" <&4 &
    fi
    mpirun=$!
    exec 9>&2 2>/dev/null # bash reports each process that was killed, and waits if nobody reads it
    find_start "$mpirun"
    echo "$mpirun $start" >"$dir/mpirun"
    [ -z "$why" ] || end_mpirun "$number" >/dev/null 2>&1 5>&- 9>&- &
    code=0
    while :; do
        signal=
        wait "$mpirun"
        found=$?
        [ "$found" = 127 ] && [ -n "$signal" ] || code=$found
        [ -n "$signal" ] || break
    done
    end_input
    : 7<>"$dir/out" 8<>"$dir/err" # where an mpirun was killed before it opened them
    if [ -z "$why" ] && [ "$code" = 137 ]; then # mpirun was killed, and may have left ranks; that of Intel MPI is a script
        (
            tees=''
            sweep
        )
    fi
    [ -n "$why" ] || wait $tees
    trap '' INT TERM HUP
    if [ -n "$why" ]; then
        sweep
        code=${stopped:-$code}
    fi
    close_output
    echo "$code" >"$dir/code"
    date +%s >"$dir/ended"
    request end "$number" "$code"
    [ ! -e "$dir/problem" ] || read -r problem <"$dir/problem"
    if [ -n "$why" ]; then
        report ended "$code $why" 2>&9 & # perhaps nobody reads it
        end_after 30 $!
    else
        report ended "$code $problem" 2>&9
    fi
    quit "$code"
}

# In a process of its own, which becomes mpirun.
launch() {
    exec >"$dir/out" 2>"$dir/err" 3<&- 4<&- 5<&- 6<&-
    [ -z "$is_uploaded" ] || prepare </dev/null || exit
    set -- mpirun -n "$ranks" "$@"
    eval "${assignments:+export $assignments}" # may have names of variables of this script
    exec "$@"
}

# Builds in the folder of uploads, and copies it to the hosts.
prepare() {
    lock || { echo "another step uploads or builds" >"$dir/problem" && exit 1; }
    cd "$home/upload" || exit 1
    if [ -n "$build" ]; then
        (set -- "$build" && eval "${assignments:+export $assignments}" && exec sh -c "$1")
        built=$?
        [ "$built" = 0 ] || { echo "the build failed with exit code $built" >"$dir/problem" && exit "$built"; }
    fi
    distribute || exit 1
    request free "$ask"
}

# Waits for the folder of uploads, for a minute at most.
lock() {
    mkfifo "$home/asks/$ask-lock"
    exec 9<>"$home/asks/$ask-lock"
    tries=600 answer=busy
    while [ "$answer" = busy ] && [ "$tries" -gt 0 ]; do
        [ "$tries" = 600 ] || nap
        tries=$((tries - 1))
        request lock "$ask"
        read -r answer <&9
    done
    exec 9<&-
    rm -f "$home/asks/$ask-lock"
    [ "$answer" = yours ]
}

# Takes files: sends the list of those that are here, and gets paths to remove, an empty line, and an archive that ends with the new list.
RECEIVE='
umask 077
mkdir -p "$home/upload" && cd "$home" || exit 1
[ ! -p requests ] || [ "$list" = sent ] || { echo here && exit; }
[ ! -e "$list" ] || cat "$list"
echo end
IFS= read -r path || exit 0
rm -f "$list"
while [ -n "$path" ]; do
    rm -f "$path"
    rmdir -p "${path%/*}" 2>/dev/null
    IFS= read -r path || exit 1
done
mkdir -p upload
tar -xmof - && [ -e "$list" ]'

receive() {
    find_start "$self"
    ask=$self-$start list=sent
    lock || { echo "another step uploads or builds" >&2 && exit 1; }
    (eval "$RECEIVE") || exit 1
    echo "done"
}

# Copies the folder of uploads to all hosts of the step.
distribute() {
    find_agent
    cd "$home" || return 1
    {
        find upload -type f -exec sha256sum {} +
        find upload -type l | sed 's/^/link  /'
    } | LC_ALL=C sort >received
    index=0 senders=''
    while read -r host; do
        host=${host%% *} index=$((index + 1))
        send "$dir/host-$index" "${host%:*}" &
        senders="$senders $!"
    done <"$dir/hostfile"
    result=0
    for each in $senders; do wait "$each" || result=1; done
    cd upload && return "$result"
}

# Its standard input is that of `receive` on the host, which has lists of the same form.
send() {
    mkfifo "$1.in" "$1.out"
    "$agent" "$2" "home=$home; list=received; $RECEIVE" <"$1.in" >"$1.out" &
    receiver=$!
    exec 7>"$1.in" 8<"$1.out"
    while IFS= read -r line <&8; do # sed of busybox waits for one more line
        echo "$line"
        [ "$line" != end ] || break
    done >"$1.has"
    if ! grep -qx here "$1.has"; then
        differing received "$1.has" >"$1.new"
        differing "$1.has" received >"$1.stale"
        if grep -qx end "$1.has" && { [ -s "$1.new" ] || [ -s "$1.stale" ]; }; then
            echo received >>"$1.new"
            cat "$1.stale" >&7
            echo >&7
            IFS='
' # tar of busybox may have no option for a list
            tar -cf - $(cat "$1.new") >&7
        fi
    fi
    exec 7>&-
    wait "$receiver" && grep -qxE 'end|here' "$1.has" && rm -f "$1".* && return
    echo "the uploaded files did not reach $2" >"$dir/problem"
    return 1
}

# Prints the paths of those lines of the first list that the second one does not have.
differing() { LC_ALL=C sort "$1" "$2" "$2" | uniq -u | sed -n 's/^[^ ]*  //p'; }

# Standard output and standard error go on to those of the step, and both into one kept output.
open_output() {
    mkdir "$dir/output"
    echo "$is_tagged" >"$dir/tagged"
    mkfifo "$dir/out" "$dir/err" "$dir/keep"
    exec 6<>"$dir/keep" # so that nobody waits for somebody to open it
    (
        exec <"$dir/keep" >/dev/null 2>&1 4<&- 5<&- 6<&-
        keep
    ) &
    keepers=$!
    tee "$dir/keep" <"$dir/out" 4<&- 5<&- 6<&- &
    tees=$!
    tee "$dir/keep" <"$dir/err" >&2 4<&- 5<&- 6<&- &
    tees="$tees $!"
}
close_output() {
    exec 6<&-
    wait "$keepers"
    rm -f "$dir/out" "$dir/err" "$dir/keep"
}

# Keeps the end of its input in files with numbers, at most 2 MiB. `dd` counts what it reads at once, so pieces of a few bytes count as 512.
keep() {
    cd "$dir/output"
    file=1
    while dd bs=512 count=2048 2>/dev/null >"$file" && [ -s "$file" ]; do
        rm -f "$((file - 2))"
        file=$((file + 1))
    done
    cat
}

# Ends the mpirun of a step: the program itself where mpirun is a script, as that of Intel MPI is.
end_mpirun() {
    { read -r mpirun began <"$home/steps/$1/mpirun"; } 2>/dev/null || return 0
    programs=
    set +f
    for each in /proc/[0-9]*; do
        find_start "${each#/proc/}" && [ "$parent" = "$mpirun" ] || continue
        case $stat in *' (mpiexec'*) programs="$programs ${each#/proc/}" ;; esac
    done
    set -f
    kill -TERM ${programs:-$mpirun}
    tries=100
    while [ "$tries" -gt 0 ] && is_alive "$mpirun" "$began"; do
        nap
        tries=$((tries - 1))
    done
    ! is_alive "$mpirun" "$began" || kill -KILL $programs "$mpirun"
}

# Ends what passes standard input on to a step: it may wait for input for ever.
end_input() {
    { read -r token <"$dir/input"; } 2>/dev/null || return 0
    input=$home/input-$token
    [ ! -p "$input" ] || : 7<>"$input" # lets go of who waits to write to it
    rm -f "$input"
    { read -r passes began <"$input-of"; } 2>/dev/null && is_alive "$passes" "$began" && kill -TERM "$passes"
    rm -f "$input-of"
}

# Ends what a step that was killed has left.
bury() {
    number=$1 dir=$home/steps/$1 tees=''
    end_mpirun "$1"
    end_input
    sweep
    [ -e "$dir/code" ] || { echo 137 >"$dir/code" && date +%s >"$dir/ended"; }
    request end "$1" 137
}

KILL_ALL='
found=
if printf x | grep -qxz x 2>/dev/null; then
    found=$(grep -lsxz "MPIOP_STEP=$number" /proc/[0-9]*/environ)
else
    for each in /proc/[0-9]*; do
        ! tr "\0" "\n" <$each/environ | grep -qx "MPIOP_STEP=$number" || found="$found $each"
    done
fi
for each in $found; do
    each=${each#/proc/}
    kill -KILL ${each%/environ}
done'

find_agent() {
    agent=${OMPI_MCA_plm_rsh_agent:-${HYDRA_LAUNCHER_EXEC:-${I_MPI_HYDRA_BOOTSTRAP_EXEC:-ssh}}}
    agent=${agent%%:*}
}

# Kills what remains of a step on its hosts: all processes that have its number in their environment. Its output then ends too.
sweep() {
    find_agent
    sweepers=$tees
    while read -r host; do
        host=${host%% *}
        (
            unset MPIOP_STEP # by which it would be killed too
            exec "$agent" "${host%:*}" "number=$number;$KILL_ALL"
        ) </dev/null >/dev/null 2>&1 4<&- 5<&- &
        sweepers="$sweepers $!"
    done <"$dir/hostfile"
    (
        set +f
        eval "$KILL_ALL"
    ) >/dev/null 2>&1 &
    sweepers="$sweepers $!"
    end_after 100 $sweepers
}

# ---- Smaller commands.

shell() {
    find_start "$self"
    request shell "$self" "$start" "$(tty)"
    export PATH="$home/bin:$PATH"
    command -v bash >/dev/null && exec bash
    exec sh
}

history() {
    set +f
    last=0
    for dir in "$home"/steps/*; do [ "${dir##*/}" -gt "$last" ] 2>/dev/null && last=${dir##*/}; done
    number=0
    while [ "$number" -lt "$last" ]; do
        number=$((number + 1)) dir=$home/steps/$number
        [ -e "$dir/started" ] || continue
        read -r started <"$dir/started"
        read -r ranks place <"$dir/place"
        read -r command <"$dir/command"
        code='' ended=''
        [ ! -e "$dir/code" ] || read -r code <"$dir/code"
        [ ! -e "$dir/ended" ] || read -r ended <"$dir/ended"
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$code" "$started" "$ended" "$ranks" "$place" "$command"
    done
}

# Prints whether lines are tagged, and what was kept of the output of a step; with `follow`, also what it prints until it ends.
# Marks where output was dropped.
output() {
    dir=$home/steps/$1 mode=${2:-} file=1
    [ -e "$dir/started" ] || { echo "there is no step $1, or it is too old" >&2 && exit 3; }
    cd "$dir/output" 2>/dev/null || { echo "the output of step $1 was dropped: those of the last $kept_outputs steps are kept" >&2 && exit 3; }
    read -r is_tagged <"$dir/tagged"
    echo "${is_tagged:-0}"
    [ "$mode" != follow ] || end_with_client
    set +f
    while find_file; do
        print_file <"$oldest" || continue # it was removed just now
        file=$((oldest + 1))
    done 2>/dev/null
    [ "$mode" != follow ] || kill "$reader"
}
is_over() { [ "$mode" != follow ] || [ -e "$dir/ended" ]; }

# Without it, this would run until the end of the step.
end_with_client() {
    exec 4<&0
    (
        while read -r word <&4; do :; done
        kill "$self"
    ) >/dev/null 2>&1 &
    reader=$!
}

# Sets `oldest` to the first file from `file` on; fails if there will be none.
find_file() {
    while :; do
        ! is_over && is_last='' || is_last=1
        oldest=
        for each in *; do
            [ "$each" -ge "$file" ] && { [ -z "$oldest" ] || [ "$each" -lt "$oldest" ]; } && oldest=$each
        done
        [ -z "$oldest" ] || return 0
        [ -z "$is_last" ] || return 1
        nap 0.5
    done
}

# Prints a file, until there is the next one.
print_file() {
    [ "$oldest" = "$file" ] || { printf '\n%s dropped\n' "$mark" && read -r line; } # half of the line is missing
    while :; do
        ! is_over && [ ! -e "$((oldest + 1))" ] && is_last='' || is_last=1
        cat || exit
        [ -z "$is_last" ] || return 0
        nap 0.5
    done
}

case ${1:-} in
hold | step | receive | shell | history) "$@" ;;
client)
    mark=$2
    shift 2
    "$@"
    printf '\n%s end\n' "$mark"
    ;;
input)
    input=$home/input-$2
    trap '[ -z "${cat:-}" ] || kill "$cat"; exit 0' TERM
    find_start "$self"
    echo "$self $start" >"$input-of"
    [ -p "$input" ] || { rm -f "$input-of" && exit 141; } # the step has ended: nobody reads it
    exec 4<&0
    # Not `exec`: when no process has the standard output of an exec any more, containerd ends its input too.
    cat <&4 >"$input" &
    cat=$!
    wait "$cat"
    exit $?
    ;;
*)
    echo "usage: mpiop step [-n RANKS] [--hosts 0,1] [--overlap] [--no-wait] [-e NAME=VALUE] [--mpirun-args OPTIONS] [--upload] [--build COMMAND] -- PROGRAM; mpiop history" >&2
    exit 2
    ;;
esac
