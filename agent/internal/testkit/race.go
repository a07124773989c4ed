//go:build race

package testkit

const isRaced = true
