#!/bin/sh
# Runs the tests again as uid 65534, a user who owns nothing: what needs root
# without saying so fails here. The user gets a read-only copy of the source
# tree, a folder each for HOME and temporary files, and no Go toolchain.
#
#   tests/identity.sh [go test flag or package]...
#
# Needs root and setpriv; says in one line why it does nothing without them.
set -eu

uid=65534

# go test calls this file for each package, in the package's folder, with the
# test binary and its flags.
if [ "${1:-}" = --one ]; then
	shift
	here=$(pwd -P)
	copy=$PARLOUR_SECOND/bin/$$.$(basename "$1")
	cp "$1" "$copy"
	chmod 755 "$copy"
	shift
	cd "$PARLOUR_SECOND/tree${here#"$PARLOUR_ROOT"}"
	# exec: a signal from go test must reach the test, not this shell.
	exec env -i PATH=/usr/bin:/bin LANG=C.UTF-8 \
		HOME="$PARLOUR_SECOND/home" TMPDIR="$PARLOUR_SECOND/tmp" PARLOUR_TEST_BOT="$PARLOUR_SECOND/bin/bot" \
		setpriv --reuid="$uid" --regid="$uid" --clear-groups --inh-caps=-all "$copy" "$@"
fi

if [ "$(id -u)" != 0 ]; then
	echo "second identity skipped: only root can run tests as another user"
	exit 0
fi
if ! setpriv --reuid="$uid" --regid="$uid" --clear-groups true 2>/dev/null; then
	echo "second identity skipped: needs setpriv (util-linux)"
	exit 0
fi

PARLOUR_ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
PARLOUR_SECOND=$(mktemp -d)
export PARLOUR_ROOT PARLOUR_SECOND
trap 'rm -rf "$PARLOUR_SECOND"' EXIT
trap 'exit 1' HUP INT TERM

cd "$PARLOUR_SECOND"
chmod 755 .
mkdir -m 755 bin tree
mkdir -m 700 home tmp
chown "$uid:$uid" home tmp
tar -C "$PARLOUR_ROOT" --exclude=./.git --exclude=./bin --exclude=./state -cf - . | tar -C tree -xf -
chmod -R a+rX,go-w tree
cp "$PARLOUR_ROOT/bin/bot" bin/bot
chmod 755 bin/bot
if ! setpriv --reuid="$uid" --regid="$uid" --clear-groups test -r tree/go.mod -a -x bin/bot; then
	echo "second identity: uid $uid cannot reach $PARLOUR_SECOND; set TMPDIR to a folder that everybody may enter" >&2
	exit 1
fi

cd "$PARLOUR_ROOT"
echo "identity: uid $uid"
[ $# -gt 0 ] || set -- ./...
CGO_ENABLED=0 go test -count=1 -vet=off -exec "'$PARLOUR_ROOT/tests/identity.sh' --one" "$@"
