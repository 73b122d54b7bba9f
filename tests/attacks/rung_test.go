//go:build linux

package attacks_test

import (
	"os"
	"testing"
)

// TestBwrapRungHolds repeats the scenarios of the full rung where bubblewrap has
// made the box.
func TestBwrapRungHolds(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("bubblewrap is never used by root")
	}
	for name, scenario := range boxScenarios() {
		t.Run(name, scenario)
	}
}

// TestASpareBoxHolds repeats them in boxes that were made before their program
// was known.
func TestASpareBoxHolds(t *testing.T) {
	for name, scenario := range boxScenarios() {
		t.Run(name, scenario)
	}
}

// boxScenarios are those of every box, whoever made it and when.
func boxScenarios() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"OnlyWritableFoldersCanBeWritten":       TestOnlyWritableFoldersCanBeWritten,
		"NothingOfTheViewCanBeChanged":          TestNothingOfTheViewCanBeChanged,
		"ScratchIsBounded":                      TestScratchIsBounded,
		"RunsShareNothing":                      TestRunsShareNothing,
		"NoDescriptorLeaks":                     TestNoDescriptorLeaks,
		"NothingStaysMounted":                   TestNothingStaysMounted,
		"ProcNamesNothingOfTheHost":             TestProcNamesNothingOfTheHost,
		"NoSocketButTCPToTheBroker":             TestNoSocketButTCPToTheBroker,
		"ServicesOfTheHostAreOutOfReach":        TestServicesOfTheHostAreOutOfReach,
		"PassedListenerAnswers":                 TestPassedListenerAnswers,
		"NoNetworkHasNoListener":                TestNoNetworkHasNoListener,
		"ListenersAreNotShared":                 TestListenersAreNotShared,
		"RightsCannotBeRegained":                TestRightsCannotBeRegained,
		"LimitsHold":                            TestLimitsHold,
		"ForkBombStopsAtTheLimit":               TestForkBombStopsAtTheLimit,
		"ViewIsExactlyThePlannedOne":            TestViewIsExactlyThePlannedOne,
		"MountsShowTheirContentAndStayReadOnly": TestMountsShowTheirContentAndStayReadOnly,
		"EnvironmentIsExact":                    TestEnvironmentIsExact,
		"StdinEnds":                             TestStdinEnds,
		"OutputIsAlwaysAPipe":                   TestOutputIsAlwaysAPipe,
		"PoliciesThatPermitNothingRunNothing":   TestPoliciesThatPermitNothingRunNothing,
		"ProgramsThatCannotStart":               TestProgramsThatCannotStart,
		"ProgramInAPrivateFolderStarts":         TestProgramInAPrivateFolderStarts,
		"CommonProgramsStart":                   TestCommonProgramsStart,
		"NoProcessSurvivesTheRun":               TestNoProcessSurvivesTheRun,
		"EndOfTheProgramEndsItsChildren":        TestEndOfTheProgramEndsItsChildren,
		"RunOutlivesItsStartingGoroutine":       TestRunOutlivesItsStartingGoroutine,
		"ExitIsTold":                            TestExitIsTold,
		"CancelledBeforeTheStartRunsNothing":    TestCancelledBeforeTheStartRunsNothing,
	}
}

// TestLandlockRungHolds repeats those that need no view and no namespace.
func TestLandlockRungHolds(t *testing.T) {
	for name, scenario := range map[string]func(*testing.T){
		"NoDescriptorLeaks":                   TestNoDescriptorLeaks,
		"NothingStaysMounted":                 TestNothingStaysMounted,
		"ServicesOfTheHostAreOutOfReach":      TestServicesOfTheHostAreOutOfReach,
		"NoNetworkHasNoListener":              TestNoNetworkHasNoListener,
		"StdinEnds":                           TestStdinEnds,
		"OutputIsAlwaysAPipe":                 TestOutputIsAlwaysAPipe,
		"NilEnvironmentIsRefused":             TestNilEnvironmentIsRefused,
		"PoliciesThatPermitNothingRunNothing": TestPoliciesThatPermitNothingRunNothing,
		"CommonProgramsStart":                 TestCommonProgramsStart,
		"NoProcessSurvivesTheRun":             TestNoProcessSurvivesTheRun,
		"EndOfTheProgramEndsItsChildren":      TestEndOfTheProgramEndsItsChildren,
		"RunOutlivesItsStartingGoroutine":     TestRunOutlivesItsStartingGoroutine,
		"ExitIsTold":                          TestExitIsTold,
		"CancelledBeforeTheStartRunsNothing":  TestCancelledBeforeTheStartRunsNothing,
	} {
		t.Run(name, scenario)
	}
}
