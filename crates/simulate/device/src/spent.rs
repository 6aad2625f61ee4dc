//! Where the time of a command went, by part.
//!
//! For: every device model, and tables of response times. Must never know: commands, any model.
//! Units: nanoseconds of simulated time.

/// Where the time of a command went; the parts of [`Spent`], in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Part {
    /// Waiting in a queue of the host interface or the device's scheduler.
    Queue = 0,
    /// On the link between host and device.
    Link = 1,
    /// In the device's memory: its transfer and the wait for it.
    Dram = 2,
    /// For an entry of the mapping table that had to be read from flash.
    Map = 3,
    /// Waiting for a channel, and on it.
    Channel = 4,
    /// Waiting for a die that works for another host command.
    DieWait = 5,
    /// Waiting for a die that cleans.
    CleanWait = 6,
    /// Sensing, programming or erasing flash.
    Flash = 7,
    /// Moving a disk's arm.
    Seek = 8,
    /// Waiting for a disk's sector to come round.
    Rotation = 9,
    /// Between medium and buffer of a disk.
    Transfer = 10,
    /// For a segment of a log that is still to be cleaned and reset.
    Segment = 11,
}

impl Part {
    /// All parts, in the order of their numbers.
    pub const ALL: [Part; 12] = [
        Part::Queue,
        Part::Link,
        Part::Dram,
        Part::Map,
        Part::Channel,
        Part::DieWait,
        Part::CleanWait,
        Part::Flash,
        Part::Seek,
        Part::Rotation,
        Part::Transfer,
        Part::Segment,
    ];

    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Part::Queue => "queue",
            Part::Link => "link",
            Part::Dram => "dram",
            Part::Map => "map miss",
            Part::Channel => "channel",
            Part::DieWait => "die wait",
            Part::CleanWait => "cleaning wait",
            Part::Flash => "flash",
            Part::Seek => "seek",
            Part::Rotation => "rotation",
            Part::Transfer => "transfer",
            Part::Segment => "segment wait",
        }
    }
}

/// Nanoseconds of one command by [`Part`], along the path that ended last; they add up to the time
/// between submission and completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// By the number of the part.
    pub parts_ns: [u64; Part::ALL.len()],
}

impl Spent {
    /// Adds time to a part.
    pub fn add(&mut self, part: Part, time_ns: u64) {
        self.parts_ns[part as usize] += time_ns;
    }

    /// The time of a part.
    pub fn part_ns(&self, part: Part) -> u64 {
        self.parts_ns[part as usize]
    }

    /// Adds the time of what came next.
    pub fn then(&mut self, next: &Spent) {
        for (sum, part) in self.parts_ns.iter_mut().zip(&next.parts_ns) {
            *sum += part;
        }
    }

    /// The sum of all parts.
    pub fn total_ns(&self) -> u64 {
        self.parts_ns.iter().sum()
    }
}
