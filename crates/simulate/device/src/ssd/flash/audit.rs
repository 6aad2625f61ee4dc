//! The check of every invariant of the back-end between calls.
//!
//! For: tests and simulation in debug builds. Must never know: anything the parts do not. Slow: it
//! looks at every page.

use super::Backend;
use super::transaction::{NIL, Step};
use super::unit::{CLASSES, Class, Stage};

impl Backend {
    /// Checks every invariant. The error says which one is broken and how.
    pub fn audit(&self) -> Result<(), String> {
        for (group, layer, item) in self.space.layers() {
            item.audit().map_err(|error| format!("group {group}, layer {layer}: {error}"))?;
        }
        if let Some(map) = &self.map {
            map.audit()?;
        }
        self.audit_contents()?;
        self.audit_units()?;
        self.audit_channels()?;
        self.audit_writing()?;
        match self.events.next() {
            Some(time) if time < self.now => Err(format!("an event at {time} is in the past")),
            Some(_) => Ok(()),
            None => self.audit_rest(),
        }
    }

    fn audit_units(&self) -> Result<(), String> {
        let mut load = vec![[0_u32; CLASSES]; self.plane_load.len()];
        for (index, unit) in self.units.iter().enumerate() {
            let busy = unit.worked_ns(self.now) + unit.cleaned_ns(self.now);
            let stages = Stage::BUSY.iter().map(|(stage, _)| unit.stage_ns(*stage, self.now));
            if busy > self.now || busy != stages.sum::<u64>() {
                return Err(format!("unit {index} was busy {busy} of {} ns", self.now));
            }
            let mut queued = 0;
            for class in Class::ALL {
                for id in unit.queues[class as usize].iter(&self.work) {
                    let work = &self.work[id];
                    queued += 1;
                    load[work.place().plane as usize][class as usize] += 1;
                    if work.step == Step::Aside || Class::of(work) != class {
                        return Err(format!("work {id} is in the wrong queue of unit {index}"));
                    }
                }
            }
            if queued != unit.queued {
                return Err(format!("unit {index}: {queued} queued, {} counted", unit.queued));
            }
            let channel = &self.channels[unit.channel as usize];
            let waits = unit.condemned.is_empty() && channel.ready & 1 << unit.bit == 0;
            if unit.stage == Stage::Idle && queued > 0 && waits {
                return Err(format!("unit {index} is idle and {queued} wait for it"));
            }
        }
        if load == self.plane_load { Ok(()) } else { Err("work per plane is miscounted".into()) }
    }

    fn audit_channels(&self) -> Result<(), String> {
        for (index, channel) in self.channels.iter().enumerate() {
            let (busy, now) = (channel.busy_ns(self.now), self.now);
            if busy > now {
                return Err(format!("channel {index} was taken {busy} of {now} ns"));
            }
            let waiting: u32 = channel.outs.iter().map(|out| out.len()).sum();
            if waiting != channel.waiting {
                let counted = channel.waiting;
                return Err(format!("channel {index}: {waiting} reads wait, {counted} counted"));
            }
            let waits = channel.ready != 0 || waiting > 0;
            if waits && !channel.waking && channel.crossing == NIL {
                return Err(format!("channel {index} is waited for and nothing will wake it"));
            }
        }
        Ok(())
    }

    fn audit_writing(&self) -> Result<(), String> {
        for (key, id) in &self.writing {
            let found = self.key(self.work[*id].target);
            if found != *key {
                return Err(format!("physical page {key} is written by work on page {found}"));
            }
        }
        Ok(())
    }

    /// What must hold once nothing is to come.
    fn audit_rest(&self) -> Result<(), String> {
        let erasing: u32 = self.erasing.iter().sum();
        let left = [
            ("transactions", self.work.len() as usize),
            ("transactions of the host", self.outstanding),
            ("pages to program", self.writing.len()),
            ("pages to decide about", self.controller.waiting()),
            ("pages of the map to read", self.fetching.len()),
            ("blocks to clean", self.jobs.len()),
            ("blocks to erase", erasing as usize),
        ];
        for (what, count) in left {
            if count > 0 {
                return Err(format!("{count} {what} are left and nothing is to come"));
            }
        }
        for (class, waits) in Class::ALL.iter().zip(&self.waits) {
            if waits.area_ns != waits.waited_ns || waits.waiting != 0 {
                let (area, waited) = (waits.area_ns, waits.waited_ns);
                return Err(format!("{}: {area} ns queued, {waited} ns waited", class.word()));
            }
        }
        Ok(())
    }
}
