package sandbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const everyID = "         0          0 4294967295\n"

func TestRunIDsBelongToNobody(t *testing.T) {
	first := candidates()[0]
	for _, c := range []struct {
		name, passwd, subuid, uids, gids string
		want                             idRange
	}{
		{name: "a usual host", passwd: "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:\n", subuid: "ann:100000:65536\n", uids: everyID, gids: everyID, want: first},
		{name: "a delegated range", subuid: "ann:1900000000:65536\n", uids: everyID, gids: everyID, want: candidates()[1]},
		{name: "a range that ends inside", subuid: "ann:1899999990:11\n", uids: everyID, gids: everyID, want: candidates()[1]},
		{name: "a range that ends before", subuid: "ann:1899999990:10\n", uids: everyID, gids: everyID, want: first},
		{name: "an account", passwd: "svc:x:1900000007:1::/:\n", uids: everyID, gids: everyID, want: candidates()[1]},
		{name: "a container", uids: "0 100000 65536\n", gids: "0 100000 65536\n", want: idRange{58_000, 2_000}},
		{name: "groups that do not exist", uids: everyID, gids: "0 100000 65536\n", want: idRange{58_000, 2_000}},
	} {
		got, err := chooseRange(append(accountIDs(c.passwd), delegatedIDs(c.subuid)...), mappedIDs(c.uids), mappedIDs(c.gids))
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, got, c.name)
	}
}

func TestNoFreeRunIDsIsAnError(t *testing.T) {
	_, err := chooseRange(nil, mappedIDs("0 1000 1\n"), mappedIDs(everyID))
	require.Error(t, err)
	_, err = chooseRange(delegatedIDs("ann:0:4294967295\n"), mappedIDs(everyID), mappedIDs(everyID))
	require.Error(t, err)
}

func TestOddLinesHoldNoIDs(t *testing.T) {
	require.Empty(t, accountIDs("# comment\n\nbroken\n+::::::\nx:y:z:1\nneg:x:-1:0\n"))
	require.Equal(t, []idRange{{7, 1}}, accountIDs("a:x:7:7"))
}
