package probe

// targets tell the intruder where the things stand that it must not reach. What
// they hold is not among it: only who read them knows that.
type targets struct {
	Mark  string // stands in the arguments of every process of the battery, for all to see
	Token string // secret of this run, by which the stage knows what came from it

	Folder  string            // of the files below; everybody may enter it, nobody list it
	Temp    string            // the folder that holds Folder
	Open    string            // the name of the folder in it where everybody may write
	Changes map[string]string // attempt to the path of the file there that it changes
	Left    string            // the name of what one run leaves for the next

	Shm    string   // a file in shared memory
	VarTmp string   // a file in the other temporary folder
	Hosts  []string // files about the host that everybody may read there

	Devices map[string]string // kind to path
	Cgroup  string            // a folder of the host's control groups
	Handle  []byte            // a file handle of the file in the home, after its type
	Kind    int32             // the handle's type

	TCP4, TCP6, TCPHost, UDP4, UDP6 string
	BrokerTwin                      string // the broker's port on another address
	Knock                           int    // the port on which a service of the run would be found
	Abstract, AbstractGram          string
	Path, PathGram                  string
	Nameserver                      string

	Shared, Semaphores, Messages int // System V ids
	Queue                        string
	Key                          int
	KeyName                      string

	Bot, Victim int // process ids as the host counts
	Descriptor  int // number of an open file of the bot
	Session     int // of the bot
	Pty         string
	Groups      []int // supplementary groups of the bot

	Limits struct {
		Memory, Disk               int64
		Files, Processes, OpenFile int
	}
}

// said is what the intruder says of one attempt.
type said struct {
	ID   string `json:"id"`
	Did  bool   `json:"did,omitempty"`  // it succeeded
	Got  string `json:"got,omitempty"`  // what was read, for the other side to judge
	Why  string `json:"why,omitempty"`  // how it was refused, or how it succeeded
	Void bool   `json:"void,omitempty"` // it could not be tried
	None bool   `json:"none,omitempty"` // the kernel has no such thing
}
