//! A server of two volumes, a simulation that ends it in any way, and what its clients may see.
//!
//! For: tests of the contract. Sectors of 512 bytes hold the number of the request that wrote them.
//! A model keeps, for each sector, all versions that a loss of power may leave. A write that fails
//! may be there in any of its sectors. A kill of the process loses no write that was answered; it
//! may undo zeroes over content that only the cache has, as a loss of power may. What is found
//! behind it is as a write that was answered, which the next flush makes durable.

pub use crate::answers::answer_of;
use crate::answers::{read_block, read_bytes};
pub use crate::block_setup::{Setting, formatted, parts, served};
use crate::device_faults::{any_failure, changes};
use cachewright_cache::Quotas;
use cachewright_live::blocks::{
    AllocationQuery, BlockAnswer, BlockOp, BlockRequest, BlockServer, RestoreError, Restored,
};
use cachewright_live::io::sim::{Fate, Sim};
use cachewright_live::io::{Buffer, Done, FileExtent, FileId, Io, Token, batch};
use cachewright_live::log::{contents, open, read_log};
use cachewright_types::{Rng, Seed, TenantId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub const BLOCK: u64 = 4096;
pub const SECTOR: u64 = 512;
/// What a device of the simulation gives for a range that was discarded.
const DISCARDED: u64 = 0xdbdb_dbdb_dbdb_dbdb;
pub const TENANTS: u16 = 2;
/// The eight highest bits of the tokens of looks at holes: not those of the server.
const LOOKS: u64 = 3 << 56;

/// What may be read of a version of a sector.
#[derive(Clone, Debug)]
enum Values {
    One(u64),
    /// Behind a trim of this number: all that the sector ever had before it, zeroes, and what a
    /// device gives for a range that was discarded. No copy: a sector has had thousands.
    EverBefore(u64),
    /// Where some versions became one.
    Some(BTreeSet<u64>),
}

impl Values {
    /// Whether this may be read, of a sector that ever had such values.
    fn contains(&self, ever: &BTreeSet<u64>, value: u64) -> bool {
        match self {
            Values::One(one) => *one == value,
            Values::EverBefore(trim) => {
                value == 0 || value == DISCARDED || value < *trim && ever.contains(&value)
            }
            Values::Some(some) => some.contains(&value),
        }
    }

    /// All that may be read.
    fn all(&self, ever: &BTreeSet<u64>) -> BTreeSet<u64> {
        match self {
            Values::One(one) => BTreeSet::from([*one]),
            Values::EverBefore(trim) => ever.range(..trim).copied().chain([0, DISCARDED]).collect(),
            Values::Some(some) => some.clone(),
        }
    }
}

/// A version of a sector.
#[derive(Clone, Debug)]
struct Version {
    /// The request that made it.
    by: u64,
    /// What may be read: one value, or many after a trim.
    values: Values,
    /// The request failed: older versions may be there as well.
    failed: bool,
    /// Zeroes, which a kill may undo before a flush.
    zeroed: bool,
}

#[derive(Clone, Debug)]
struct Sector {
    /// Since the last loss of power.
    versions: Vec<Version>,
    /// The place of the one that is durable for sure.
    durable: usize,
    /// All values that were ever written to it: numbers of requests, and zeroes.
    ever: BTreeSet<u64>,
}

impl Sector {
    /// A sector that holds a value for sure.
    fn of(value: u64) -> Sector {
        let mut sector = Sector { versions: Vec::new(), durable: 0, ever: BTreeSet::from([value]) };
        sector.hold(Values::One(value));
        sector
    }

    /// It has one version now, which is durable.
    fn hold(&mut self, values: Values) {
        self.versions = vec![Version { by: 0, values, failed: false, zeroed: false }];
        self.durable = 0;
    }

    /// Whether one of the versions from `first` on may be read so.
    fn may_be(&self, first: usize, value: u64) -> bool {
        self.versions[first..].iter().any(|one| one.values.contains(&self.ever, value))
    }
}

/// A request that is not answered.
#[derive(Clone, Debug)]
struct Asked {
    op: BlockOp,
    tenant: u16,
    sectors: Range<u64>,
    durable: bool,
    /// The request was submitted behind this one: for reads, and for flushes all answered writes.
    answered: BTreeSet<u64>,
}

/// A look at holes that is under way.
#[derive(Clone, Debug)]
struct Look {
    tenant: u16,
    sectors: Range<u64>,
    query: AllocationQuery,
    /// Requests that were not answered when it began: it need not see them.
    unanswered: BTreeSet<u64>,
}

/// A write that was answered.
#[derive(Clone, Debug)]
pub struct Written {
    pub tenant: u16,
    pub sectors: Range<u64>,
    /// Requests submitted before it was answered.
    pub answered_at: u64,
}

pub struct World {
    pub sim: Sim,
    pub server: BlockServer,
    pub setting: Setting,
    pub files: (Vec<FileId>, Vec<FileId>),
    sectors: BTreeMap<(u16, u64), Sector>,
    open: BTreeMap<u64, Asked>,
    /// Looks at holes, by number.
    looks: BTreeMap<u64, Look>,
    /// Sectors of holes that were found.
    pub holes: u64,
    /// Writes, trims and zeroes that were answered, by request.
    pub written: BTreeMap<u64, Written>,
    pub tags: u64,
    /// Requests answered with an error, of the first volumes: others are served without faults.
    pub errors: [u64; TENANTS as usize],
    /// Errors are no failure of the test.
    pub may_fail: bool,
    /// Volumes of which a failed sync has given up writes, and that were served again.
    given_up: BTreeSet<u16>,
    pub restored: Restored,
    /// The volume of each tenant of this server; nothing of one that was removed.
    pub running: Vec<Option<u16>>,
    pub context: String,
}

/// What is there, by tenant and sector.
type Found = BTreeMap<(u16, u64), u64>;

impl World {
    pub fn new(setting: Setting, seed: Seed) -> World {
        let (mut sim, files) = formatted(&setting, seed);
        let (server, restored) = served(&mut sim, &setting, &files).unwrap().unwrap();
        let mut sectors = BTreeMap::new();
        let (volumes, more) = setting.backings;
        for tenant in 0..volumes {
            for sector in 0..(setting.blocks + more) * BLOCK / SECTOR {
                sectors.insert((tenant, sector), Sector::of(0));
            }
        }
        World {
            sim,
            server,
            running: setting.served.iter().map(|(volume, _)| Some(*volume)).collect(),
            setting,
            files,
            sectors,
            open: BTreeMap::new(),
            looks: BTreeMap::new(),
            holes: 0,
            written: BTreeMap::new(),
            tags: 0,
            errors: [0; TENANTS as usize],
            may_fail: false,
            given_up: BTreeSet::new(),
            restored,
            context: format!("seed {seed:?}"),
        }
    }

    /// Submits a request; returns its number.
    pub fn submit(&mut self, op: BlockOp, tenant: u16, sectors: Range<u64>, durable: bool) -> u64 {
        let end = match self.setting.short {
            0 => sectors.end,
            _ => sectors.end.min(self.setting.sectors_of(tenant)),
        };
        let (sectors, is_last) = (sectors.start..end, end == self.setting.sectors_of(tenant));
        self.tags += 1;
        let tag = self.tags;
        let (offset, length) = (sectors.start * SECTOR, (sectors.end - sectors.start) * SECTOR);
        let mut data = Buffer::default();
        if op == BlockOp::Write {
            data = Buffer::copy_of(&tag.to_le_bytes().repeat(length as usize / 8));
        }
        let whole_end = if is_last { sectors.end } else { sectors.end / 8 * 8 };
        let whole = sectors.start.next_multiple_of(8)..whole_end;
        for sector in sectors.clone() {
            let known = self.sectors.get_mut(&(tenant, sector)).unwrap();
            let values = match op {
                BlockOp::Write => Values::One(tag),
                BlockOp::Zero | BlockOp::Provision => Values::One(0),
                BlockOp::Trim if whole.contains(&sector) => Values::EverBefore(tag),
                _ => continue,
            };
            if let Values::One(value) = values {
                known.ever.insert(value);
            }
            let zeroed = matches!(op, BlockOp::Zero | BlockOp::Provision);
            known.versions.push(Version { by: tag, values, failed: false, zeroed });
        }
        let answered = match op {
            BlockOp::Flush => {
                let own = self.written.iter().filter(|(_, written)| written.tenant == tenant);
                own.map(|(tag, _)| *tag).collect()
            }
            _ => BTreeSet::new(),
        };
        self.open.insert(tag, Asked { op, tenant, sectors, durable, answered });
        let tenant = self.tenant_of(tenant).unwrap();
        let request = BlockRequest { tag, tenant, op, offset, length, durable, data };
        self.server.request(&mut self.sim, request);
        self.take_answers();
        tag
    }

    /// Begins to look which bytes of some sectors are holes.
    pub fn look_at_holes(&mut self, volume: u16, sectors: Range<u64>) {
        self.tags += 1;
        let (tag, tenant) = (self.tags, self.tenant_of(volume).unwrap());
        let bytes = sectors.start * SECTOR..sectors.end * SECTOR;
        let token = Token(LOOKS | tag);
        let query = self.server.begin_allocation(&mut self.sim, token, tenant, bytes, 4);
        let (query, unanswered) = (query.unwrap(), self.open.keys().copied().collect());
        self.looks.insert(tag, Look { tenant: volume, sectors, query, unanswered });
    }

    /// Sectors of holes read as zeroes, as a read that began with the look may, and that came
    /// before the requests which were not answered then.
    fn take_look(&mut self, done: Done) {
        let tag = done.token.0 & !LOOKS;
        let Some(look) = self.looks.remove(&tag) else { return };
        let Look { tenant, sectors, query, unanswered } = look;
        let (mut at, end) = (sectors.start * SECTOR, sectors.end * SECTOR);
        for FileExtent { bytes, is_hole } in query.end(done.output) {
            assert!(bytes > 0 && at + bytes <= end, "{}", self.context);
            let within = at / SECTOR..(at + bytes).div_ceil(SECTOR);
            at += bytes;
            for sector in within.filter(|_| is_hole) {
                self.check_sector(tag, &unanswered, tenant, sector, 0);
                self.holes += 1;
            }
        }
        assert!(at > sectors.start * SECTOR, "{}: at least one extent", self.context);
    }

    /// The tenant that a volume has now.
    pub fn tenant_of(&self, volume: u16) -> Option<TenantId> {
        let tenant = self.running.iter().position(|running| *running == Some(volume));
        tenant.map(|tenant| TenantId(tenant as u16))
    }

    /// Requests that are not answered.
    pub fn unanswered(&self) -> usize {
        self.open.len()
    }

    /// One operation is done; false when nothing is under way.
    pub fn step(&mut self) -> bool {
        self.server.advance(&mut self.sim);
        self.take_answers();
        if !self.sim.is_busy() {
            return false;
        }
        let mut done = Vec::new();
        self.sim.wait(&mut done);
        for done in done {
            match self.server.owns(done.token) {
                true => self.server.on_done(&mut self.sim, done),
                false => self.take_look(done),
            }
        }
        self.take_answers();
        true
    }

    /// Goes on until nothing is under way; all requests are answered then.
    pub fn drain(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 200_000, "{}: no end", self.context);
        }
        assert!(self.open.is_empty(), "{}: never answered {:?}", self.context, self.open);
        assert!(self.server.is_idle(), "{}", self.context);
        self.server.cache().audit().unwrap();
    }

    /// Reads whole volumes and checks them.
    pub fn read_all(&mut self) {
        for tenant in self.running.clone().into_iter().flatten() {
            for block in 0..self.setting.blocks_of(tenant) {
                self.submit(BlockOp::Read, tenant, block * 8..block * 8 + 8, false);
                self.drain();
            }
        }
    }

    fn take_answers(&mut self) {
        for answer in self.server.take_answers() {
            let asked = self.open.remove(&answer.tag).unwrap();
            match answer.result {
                Err(error) => {
                    assert!(self.may_fail, "{}: {asked:?} {error:?}", self.context);
                    self.errors[usize::from(asked.tenant)] += 1;
                    for sector in asked.sectors.clone() {
                        let known = self.sectors.get_mut(&(asked.tenant, sector)).unwrap();
                        let mut versions = known.versions.iter_mut();
                        let own = versions.find(|version| version.by == answer.tag);
                        own.into_iter().for_each(|version| version.failed = true);
                    }
                }
                Ok(()) => self.answered(answer, asked),
            }
        }
    }

    fn answered(&mut self, answer: BlockAnswer, asked: Asked) {
        let tag = answer.tag;
        match asked.op {
            BlockOp::Read => self.check_read(&answer, &asked),
            BlockOp::Flush => {
                for ((tenant, _), sector) in &mut self.sectors {
                    if *tenant == asked.tenant {
                        forget_before(sector, |by| asked.answered.contains(&by));
                    }
                }
            }
            BlockOp::Write | BlockOp::Zero | BlockOp::Provision | BlockOp::Trim => {
                if asked.durable {
                    for sector in asked.sectors.clone() {
                        let known = self.sectors.get_mut(&(asked.tenant, sector)).unwrap();
                        forget_before(known, |by| by == tag);
                    }
                }
                let Asked { tenant, sectors, .. } = asked;
                let written = Written { tenant, sectors, answered_at: self.tags };
                self.written.insert(tag, written);
            }
        }
    }

    /// A read brings, for each sector, the version before it or one that was written meanwhile.
    fn check_read(&mut self, answer: &BlockAnswer, asked: &Asked) {
        for (sector, bytes) in asked.sectors.clone().zip(answer.data.chunks(SECTOR as usize)) {
            let found = value_of(bytes, &self.context);
            self.check_sector(answer.tag, &BTreeSet::new(), asked.tenant, sector, found);
        }
        assert_eq!(answer.data.len() as u64, (asked.sectors.end - asked.sectors.start) * SECTOR);
    }

    /// A request that was submitted under this number, and need not see some before it, may read
    /// this in a sector.
    fn check_sector(&self, tag: u64, unseen: &BTreeSet<u64>, tenant: u16, sector: u64, found: u64) {
        let known = &self.sectors[&(tenant, sector)];
        // A write that may fail is there for sure when it was answered.
        let (open, may_fail) = (&self.open, self.may_fail);
        let sure = |one: &Version| !(one.failed || may_fail && open.contains_key(&one.by));
        let seen = |one: &Version| one.by < tag && !unseen.contains(&one.by);
        let before = known.versions.iter().rposition(|one| seen(one) && sure(one)).unwrap();
        assert!(
            known.may_be(before, found),
            "{}: request {tag} read {found} in sector {sector} of {tenant}, allowed {:?}",
            self.context,
            &known.versions[before..],
        );
    }

    /// Power is lost, and the server begins again; recovery itself may be cut short.
    pub fn crash(&mut self, rng: &mut Rng, cut_short: u64) {
        let mut sim = self.sim.crash_at_random(Seed(rng.next_u64()), rng);
        for _ in 0..cut_short {
            self.begin_in_vain(&mut sim, rng);
            sim = match rng.below(2) {
                0 => sim.kill_at_random(Seed(rng.next_u64()), rng),
                _ => sim.crash_at_random(Seed(rng.next_u64()), rng),
            };
        }
        self.restart(sim);
    }

    /// The server is killed, and begins again; recovery itself may be cut short by further kills.
    pub fn kill(&mut self, rng: &mut Rng, cut_short: u64) {
        let mut given_up = self.sim.has_given_up();
        let mut sim = self.sim.kill_at_random(Seed(rng.next_u64()), rng);
        for _ in 0..cut_short {
            self.begin_in_vain(&mut sim, rng);
            given_up |= sim.has_given_up();
            sim = sim.kill_at_random(Seed(rng.next_u64()), rng);
        }
        self.restart_killed(sim, given_up);
    }

    /// A start that is stopped at one of its operations, or meets a device that fails.
    fn begin_in_vain(&self, sim: &mut Sim, rng: &mut Rng) {
        let operations = rng.below(80);
        match rng.below(2) {
            0 => sim.stop_after(operations),
            _ => {
                let failure = any_failure(rng);
                let mut begun = 0;
                sim.set_faults(Box::new(move |_, op| {
                    begun += u64::from(changes(op));
                    (changes(op) && begun > operations).then_some(failure)
                }));
            }
        }
        let _ = served(sim, &self.setting, &self.files);
    }

    /// Goes on with what a kill has left, and checks it: writes that were answered are there,
    /// unless a sync has given them up.
    pub fn restart_killed(&mut self, mut sim: Sim, given_up: bool) {
        self.check_groups(&mut sim);
        let found = self.begin_again(sim);
        match given_up {
            true => {
                self.check_found(&found);
                self.written.clear();
            }
            false => self.check_kept(&found),
        }
        for volume in self.running.clone().into_iter().flatten() {
            self.tags += 1;
            let by = self.tags;
            let own = (volume, 0)..(volume + 1, 0);
            for (place, value) in found.range(own) {
                let known = self.sectors.get_mut(place).unwrap();
                known.versions.push(Version {
                    by,
                    values: Values::One(*value),
                    failed: false,
                    zeroed: false,
                });
            }
            let written = Written { tenant: volume, sectors: 0..0, answered_at: by };
            self.written.insert(by, written);
        }
    }

    /// Checks what a kill would leave, and goes on without one: writes that were answered are
    /// there, also when power is lost behind a flush. `reads` says whether all is read before that.
    pub fn check_killed(&self, mut sim: Sim, reads: bool) {
        let (mut server, _) = served(&mut sim, &self.setting, &self.files).unwrap().unwrap();
        let context = format!("{}, killed", self.context);
        let before =
            reads.then(|| content_of(&mut server, &mut sim, &self.setting, false, &context));
        for tenant in 0..self.setting.served.len() {
            let request = BlockRequest {
                tag: 1,
                tenant: TenantId(tenant as u16),
                op: BlockOp::Flush,
                offset: 0,
                length: 0,
                durable: false,
                data: Buffer::default(),
            };
            server.request(&mut sim, request);
            assert_eq!(answer_of(&mut server, &mut sim).result, Ok(()), "{context}");
        }
        let mut sim = sim.crash(Seed(1), std::iter::repeat(Fate::Lost));
        let (mut server, _) = served(&mut sim, &self.setting, &self.files).unwrap().unwrap();
        let after = content_of(&mut server, &mut sim, &self.setting, false, &context);
        self.check_kept(&after);
        if let Some(before) = before {
            assert!(before == after, "{context}: {before:?} was flushed, {after:?} is there");
        }
    }

    /// Goes on with what a loss of power has left, and checks it.
    pub fn restart(&mut self, mut sim: Sim) {
        let has_lost = self.check_clean(&mut sim);
        assert!(!has_lost, "{}: devices keep what they have synced", self.context);
        let found = self.begin_again(sim);
        self.check_found(&found);
        self.go_on_with(found);
    }

    /// What recovery finds clean is what its backing device has, but for sectors that a trim or
    /// zeroes have changed: so anything else there proves that others wrote to the device. Returns
    /// whether durable content may be gone.
    fn check_clean(&self, sim: &mut Sim) -> bool {
        let set = open(sim, &self.files.0).unwrap();
        let log = read_log(sim, &set).unwrap();
        // Nothing that is clean counts where a server went on without the cache, and nothing is
        // proven where devices return damaged content.
        let counts = set.superblock.bypassed.is_none() && !self.may_fail;
        let clean = log.blocks.iter().filter(|block| counts && !block.dirty);
        let clean: Vec<_> = clean.copied().collect();
        let cached = contents(sim, &set.set, &clean);
        for (block, cached) in clean.iter().zip(cached) {
            let Some(cached) = cached else { continue };
            let file = self.files.1[block.volume.0 as usize - 1];
            let range = (file, block.number * BLOCK, BLOCK as usize);
            let Some(Ok(behind)) = batch::read(sim, [range]).pop() else { continue };
            // What lies behind the end of the volume is not its own.
            let table = &set.superblock.volumes;
            let known = table.iter().find(|known| known.id == block.volume);
            let end = known.map_or(0, |known| known.bytes);
            let own = end.saturating_sub(block.number * BLOCK).min(BLOCK) / SECTOR;
            let sectors = cached.chunks(SECTOR as usize).zip(behind.chunks(SECTOR as usize));
            let sectors = sectors.take(own as usize);
            for (sector, (cached, behind)) in sectors.enumerate() {
                let value = value_of(behind, &self.context);
                assert!(
                    cached == behind || [0, DISCARDED].contains(&value),
                    "{}: sector {sector} of {block:?} has {value} behind the cache",
                    self.context
                );
            }
        }
        log.has_lost()
    }

    /// Goes on with what is left, where some pages of the cache cannot be read. Reads may fail from
    /// now on, and what they bring is checked. Returns how many sectors could not be read; nothing
    /// if the log itself finds that it has lost something, so that older content may be read.
    pub fn restart_unreadable(&mut self, mut sim: Sim) -> Option<usize> {
        let set = open(&mut sim, &self.files.0).unwrap();
        if read_log(&mut sim, &set).unwrap().has_lost() {
            return None;
        }
        self.may_fail = true;
        let found = self.begin_again(sim);
        self.check_found(&found);
        let mut unread = 0;
        for (place, known) in &mut self.sectors {
            if found.contains_key(place) || !self.running.contains(&Some(place.0)) {
                continue;
            }
            unread += 1;
            let left = known.versions[known.durable..].iter();
            let values = left.flat_map(|version| version.values.all(&known.ever)).collect();
            known.hold(Values::Some(values));
        }
        self.go_on_with(found);
        Some(unread)
    }

    fn check_groups(&self, sim: &mut Sim) {
        let set = open(sim, &self.files.0).unwrap();
        let has_lost = read_log(sim, &set).unwrap().has_lost();
        assert!(!has_lost, "{}: devices keep what they have synced", self.context);
    }

    /// As [`World::restart`]; reads of these blocks may fail, and those of others do not. Returns
    /// how many failed.
    pub fn restart_damaged(&mut self, mut sim: Sim, damaged: &[(u16, u64)]) -> usize {
        let mut failed = 0;
        let (mut server, _) = served(&mut sim, &self.setting, &self.files).unwrap().unwrap();
        for tenant in 0..TENANTS {
            for block in 0..self.setting.blocks {
                let answer = read_block(&mut server, &mut sim, tenant, block);
                failed += usize::from(answer.result.is_err());
                let allowed = answer.result.is_ok() || damaged.contains(&(tenant, block));
                assert!(allowed, "{}: block {block} of {tenant}", self.context);
                let sectors = answer.data.chunks(SECTOR as usize).enumerate();
                let value = |(at, bytes): (usize, &[u8])| {
                    ((tenant, block * 8 + at as u64), value_of(bytes, &self.context))
                };
                self.check_found(&sectors.map(value).collect());
            }
        }
        failed
    }

    /// Checks what a read has brought of a tenant's sectors after a loss of power.
    pub fn check_sectors<'a>(&self, tenant: u16, read: impl Iterator<Item = (u64, &'a [u8])>) {
        let value = |(sector, bytes)| ((tenant, sector), value_of(bytes, &self.context));
        self.check_found(&read.map(value).collect());
    }

    /// Whether what a read has brought of a tenant's sectors is as new as what was durable.
    pub fn is_durable<'a>(
        &self,
        tenant: u16,
        mut read: impl Iterator<Item = (u64, &'a [u8])>,
    ) -> bool {
        read.all(|(sector, bytes)| {
            let known = &self.sectors[&(tenant, sector)];
            let value = value_of(bytes, &self.context);
            known.may_be(known.durable, value)
        })
    }

    /// Checks what a read has brought of a tenant's sectors after a kill.
    pub fn check_kept_sectors<'a>(&self, tenant: u16, read: impl Iterator<Item = (u64, &'a [u8])>) {
        let value = |(sector, bytes)| ((tenant, sector), value_of(bytes, &self.context));
        self.check_kept(&read.map(value).collect());
    }

    /// Power is lost; the prefix is checked, too.
    pub fn crash_checking_prefix(&mut self, rng: &mut Rng) {
        let sim = self.sim.crash_at_random(Seed(rng.next_u64()), rng);
        let found = self.begin_again(sim);
        self.check_found(&found);
        self.check_prefix(&found);
        self.go_on_with(found);
    }

    /// Checks what a loss of power would leave, and goes on without one. Reads that fail are no
    /// failure of the test where errors are none.
    pub fn check_left(&self, mut sim: Sim) {
        self.check_clean(&mut sim);
        let (mut server, _) = served(&mut sim, &self.setting, &self.files).unwrap().unwrap();
        let (setting, may_fail) = (&self.setting, self.may_fail);
        let found = content_of(&mut server, &mut sim, setting, may_fail, &self.context);
        self.check_found(&found);
    }

    /// Checks that what a start behind this reads is read again, when other blocks have driven it
    /// out of the cache.
    pub fn check_read_again(&self, mut sim: Sim) {
        let (mut server, _) = served(&mut sim, &self.setting, &self.files).unwrap().unwrap();
        let mut read = || {
            let (setting, may_fail) = (&self.setting, self.may_fail);
            content_of(&mut server, &mut sim, setting, may_fail, &self.context)
        };
        let (first, again) = (read(), read());
        assert!(first == again, "{}: {first:?} was read, then {again:?}", self.context);
    }

    /// Answered writes of a volume that no flush has made durable may be lost from now on, as at a
    /// loss of power: its backing device has failed. A later flush says nothing of them.
    pub fn may_have_lost(&mut self, volume: u16) {
        for ((_, _), sector) in self.sectors.range_mut((volume, 0)..(volume + 1, 0)) {
            let after = &mut sector.versions[sector.durable + 1..];
            after.iter_mut().for_each(|version| version.failed = true);
        }
        self.written.retain(|_, written| written.tenant != volume);
    }

    /// Flushes all volumes and reads them: what is read is there from then on, for sure. Nothing
    /// may be under way. Of `given_up` a failed sync has given up writes: what is read of them may
    /// be gone after a later loss of power, now and behind each start, until it is written again.
    pub fn settle_on_what_is_read(&mut self, given_up: Option<u16>) {
        for volume in self.running.clone().into_iter().flatten() {
            self.submit(BlockOp::Flush, volume, 0..0, false);
        }
        self.drain();
        let (server, sim) = (&mut self.server, &mut self.sim);
        let found = content_of(server, sim, &self.setting, false, &self.context);
        self.check_found(&found);
        self.given_up.extend(given_up);
        self.go_on_with(found);
    }

    fn begin_again(&mut self, mut sim: Sim) -> Found {
        let mut began = served(&mut sim, &self.setting, &self.files).unwrap();
        // A volume can leave when the backing device has its content.
        while let Err(RestoreError::DirtyUnserved { volume, .. }) = &began {
            self.come_back(*volume as u16 - 1);
            began = served(&mut sim, &self.setting, &self.files).unwrap();
        }
        let (server, restored) = began.unwrap();
        (self.sim, self.server, self.restored) = (sim, server, restored);
        self.running = self.setting.served.iter().map(|(volume, _)| Some(*volume)).collect();
        self.open.clear();
        self.looks.clear();
        let (server, sim) = (&mut self.server, &mut self.sim);
        content_of(server, sim, &self.setting, self.may_fail, &self.context)
    }

    /// A volume is served again; quotas are as they were, with one block for it.
    fn come_back(&mut self, volume: u16) {
        self.setting.serve(volume);
        if let Quotas::PerTenant(quotas) = &mut self.setting.quotas {
            quotas.push(1);
        }
    }

    /// Writes to volumes that are not served, as anything may: the cache holds nothing of them.
    /// Power may be lost at once afterwards.
    pub fn write_outside(&mut self) {
        self.drain();
        for volume in 0..self.setting.backings.0 {
            if self.setting.tenant(volume).is_some() {
                continue;
            }
            self.tags += 1;
            let (tag, file) = (self.tags, self.files.1[usize::from(volume)]);
            let bytes = self.setting.blocks * BLOCK - self.setting.short * SECTOR;
            let data = Buffer::copy_of(&tag.to_le_bytes().repeat(bytes as usize / 8));
            batch::write(&mut self.sim, [(file, 0, data)]).unwrap();
            let sectors = 0..bytes / SECTOR;
            self.hold(sectors.map(|sector| ((volume, sector), tag)).collect());
        }
    }

    /// Writes behind the ends of volumes that can grow, as anything may: the server never touches
    /// that, and finds it there when they have grown.
    pub fn write_behind(&mut self) {
        self.drain();
        for volume in self.setting.served.clone().into_iter().map(|(volume, _)| volume) {
            self.tags += 1;
            let (tag, file) = (self.tags, self.files.1[usize::from(volume)]);
            let sectors = self.setting.sectors_of(volume)
                ..(self.sim.file_bytes(file) / SECTOR).min(self.setting.blocks_of(volume) * 8);
            let page = sectors.start / 8 * BLOCK;
            let length = (sectors.end * SECTOR - page) as usize;
            let mut data =
                batch::read(&mut self.sim, [(file, page, length)]).pop().unwrap().unwrap();
            let kept = (sectors.start * SECTOR - page) as usize;
            data[kept..].copy_from_slice(&tag.to_le_bytes().repeat((length - kept) / 8));
            batch::write(&mut self.sim, [(file, page, data)]).unwrap();
            self.hold(sectors.map(|sector| ((volume, sector), tag)).collect());
        }
    }

    fn go_on_with(&mut self, mut found: Found) {
        self.written.clear();
        for volume in self.given_up.clone() {
            self.may_have_lost(volume);
        }
        found.retain(|(volume, _), _| !self.given_up.contains(volume));
        self.hold(found);
    }

    /// Sectors hold these values for sure.
    fn hold(&mut self, found: Found) {
        for (place, value) in found {
            let known = self.sectors.get_mut(&place).unwrap();
            known.ever.insert(value);
            known.hold(Values::One(value));
        }
    }

    /// Each sector holds its last durable version or a later one; without trims, zeroes and writes
    /// round the cache what is there of a volume is a prefix of what was acknowledged.
    fn check_found(&self, found: &Found) {
        for (place, value) in found {
            let known = &self.sectors[place];
            assert!(
                known.may_be(known.durable, *value),
                "{}: {place:?} holds {value}, {} of {:?} is durable",
                self.context,
                known.durable,
                known.versions
            );
        }
    }

    /// Each sector holds the last write that was answered, or a later version.
    fn check_kept(&self, found: &Found) {
        for (place, value) in found {
            let known = &self.sectors[place];
            let is_answered =
                |one: &Version| !one.zeroed && (one.by == 0 || self.written.contains_key(&one.by));
            let answered = known.versions.iter().rposition(is_answered);
            let from = answered.unwrap_or_default().max(known.durable);
            assert!(
                known.may_be(from, *value),
                "{}: {place:?} holds {value}, {from} of {:?} was answered",
                self.context,
                known.versions
            );
        }
    }

    /// What is there of each volume is a prefix of what was acknowledged: a write that was answered
    /// before another was submitted is there if the other is.
    fn check_prefix(&self, found: &Found) {
        let newest = |tenant: u16| {
            let own = found.iter().filter(move |((other, _), _)| *other == tenant);
            own.map(|(_, value)| *value).max().unwrap_or(0)
        };
        for (tag, written) in &self.written {
            if written.answered_at >= newest(written.tenant) {
                continue;
            }
            for sector in written.sectors.clone() {
                let value = found[&(written.tenant, sector)];
                assert!(
                    value >= *tag,
                    "{}: {value} is there, write {tag} of sector {sector} is lost",
                    self.context
                );
            }
        }
    }
}

/// What clients read of all sectors.
fn content_of(
    server: &mut BlockServer,
    sim: &mut Sim,
    setting: &Setting,
    may_fail: bool,
    context: &str,
) -> Found {
    let mut found = BTreeMap::new();
    let mut served: Vec<(usize, u16)> =
        setting.served.iter().enumerate().map(|(tenant, (volume, _))| (tenant, *volume)).collect();
    // What is read first may drive the rest out.
    let first = sim.now_ns() % served.len() as u64;
    served.rotate_left(first as usize);
    for (tenant, volume) in served {
        for block in 0..setting.blocks_of(volume) {
            let end = ((block + 1) * BLOCK).min(setting.sectors_of(volume) * SECTOR);
            let answer = read_bytes(server, sim, tenant as u16, block * BLOCK..end);
            assert!(may_fail || answer.result.is_ok(), "{context}: block {block} of {volume}");
            for (at, bytes) in answer.data.chunks(SECTOR as usize).enumerate() {
                found.insert((volume, block * 8 + at as u64), value_of(bytes, context));
            }
        }
    }
    found
}

/// The newest version for which `durable` holds is durable: older ones are gone.
fn forget_before(sector: &mut Sector, durable: impl Fn(u64) -> bool) {
    if let Some(place) = sector.versions.iter().rposition(|version| durable(version.by)) {
        sector.durable = sector.durable.max(place);
    }
}

/// The one value of a sector.
fn value_of(bytes: &[u8], context: &str) -> u64 {
    let value = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let whole = bytes.chunks(8).all(|word| word == value.to_le_bytes());
    assert!(whole, "{context}: a sector holds one value");
    value
}
