//! What records the decisions of a server: one file, or recordings in a folder.
//!
//! For: recordings that begin with a server, follow its stack and end with it. Must never know: how
//! a recording is written, why another stack decides. Units: blocks, nanoseconds. What killed
//! servers left of the file is recovered beside it. A stack has a file or a folder, not both.

use crate::abandoned::AbandonedRecordings;
use crate::error::LiveError;
use crate::lines::OperatorLine;
use crate::plan::LivePlan;
use crate::recording::LiveRecording;
use crate::recordings::Recordings;
use cachewright_live::blocks::BlockServer;
use cachewright_live::io::Io;
use cachewright_types::TenantId;
use std::path::{Path, PathBuf};

/// Recordings under way; see the top of the file.
pub(super) struct DecisionRecorder {
    file: Option<LiveRecording>,
    /// Recordings of servers that were killed.
    abandoned: Option<AbandonedRecordings>,
    folder: Option<Recordings>,
}

impl DecisionRecorder {
    /// Errors: what is decided cannot be recorded as wanted.
    pub(super) fn check(plan: &LivePlan, record: Option<&Path>) -> Result<(), LiveError> {
        record.map_or(Ok(()), LiveRecording::check)?;
        Recordings::check(plan, record)
    }

    /// Begins to record, in the file `record` if there is one and in a folder if the stack asks for
    /// that, and to recover what killed servers left of the file. Errors: the operating system's.
    pub(super) fn begin(
        record: Option<&Path>,
        plan: &LivePlan,
        (io, blocks): (&impl Io, &mut BlockServer),
    ) -> Result<DecisionRecorder, LiveError> {
        let abandoned = record.map(AbandonedRecordings::begin).transpose()?.flatten();
        let file = record.map(|path| LiveRecording::begin(path, plan)).transpose()?;
        file.iter().for_each(|file| blocks.record(file.sink()));
        let folder = Recordings::begin(plan, io, blocks)?;
        Ok(DecisionRecorder { file, abandoned, folder })
    }

    /// Lines for operators, where the cache holds so many blocks at the start.
    pub(super) fn described(&self, blocks: u64) -> Vec<String> {
        let file = self.file.iter().map(|file| file.described(blocks));
        file.chain(self.folder.iter().map(Recordings::described)).collect()
    }

    /// The recordings in a folder, if there are such.
    pub(super) fn folder(&self) -> Option<&Recordings> {
        self.folder.as_ref()
    }

    /// Lines about recordings that have ended early, failed or been recovered since the last call.
    pub(super) fn news(&mut self, blocks: &BlockServer) -> Vec<OperatorLine> {
        let stopped = self.file.as_mut().and_then(|file| file.stopped_early(blocks));
        let rolled = self.folder.as_mut().map(|folder| folder.news(blocks));
        let lines = stopped.into_iter().chain(rolled.into_iter().flatten());
        let recovered = self.abandoned.iter().flat_map(AbandonedRecordings::news);
        lines.map(OperatorLine::warning).chain(recovered).collect()
    }

    /// Recordings end, and what was recorded is kept, when that is due.
    pub(super) fn tick(
        &mut self,
        plan: &LivePlan,
        (io, blocks): (&mut impl Io, &mut BlockServer),
        now_ns: u64,
    ) {
        if let Some(folder) = &mut self.folder {
            folder.tick(plan, io, blocks);
        } else if self.file.is_some() {
            blocks.keep_recording(now_ns, plan.serve.record_keep.0);
        }
    }

    /// Finishes the recording under way in the folder of recordings, and begins another one.
    pub(super) fn roll(&mut self, plan: &LivePlan, (io, blocks): (&mut impl Io, &mut BlockServer)) {
        if let Some(folder) = &mut self.folder {
            folder.roll(plan, io, blocks);
        }
    }

    /// Goes by the times of another stack from now on.
    pub(super) fn follow(&mut self, plan: &LivePlan) {
        self.folder.iter_mut().for_each(|folder| folder.follow(plan));
    }

    /// Ends the recording in a file, because another stack decides from now on. Returns where it is
    /// to begin anew, and what operators are told.
    pub(super) fn set_aside(
        &mut self,
        (io, blocks): (&mut impl Io, &mut BlockServer),
    ) -> (Option<PathBuf>, Vec<String>) {
        let Some(recording) = self.file.take() else { return (None, Vec::new()) };
        let path = recording.path().to_owned();
        let line = recording.set_aside(io, blocks).unwrap_or_else(|error| error.to_string());
        (Some(path), vec![line])
    }

    /// Begins the recording in a file again; returns what operators are told.
    pub(super) fn begin_again(
        &mut self,
        path: &Path,
        plan: &LivePlan,
        blocks: &mut BlockServer,
    ) -> String {
        let begun = LiveRecording::check(path).and_then(|()| LiveRecording::begin(path, plan));
        match begun {
            Ok(recording) => {
                blocks.record(recording.sink());
                let engine = blocks.cache().engine();
                let tenants = (0..plan.volumes.len()).map(|tenant| TenantId(tenant as u16));
                let held = tenants.map(|tenant| u64::from(engine.occupancy(tenant))).sum::<u64>();
                let line = recording.described(held);
                self.file = Some(recording);
                line
            }
            Err(error) => format!("the recording ends: {error}"),
        }
    }

    /// Ends all recordings; returns lines for operators. Errors: those of the file.
    pub(super) fn finish(
        self,
        io: &mut impl Io,
        blocks: &mut BlockServer,
    ) -> Result<Vec<String>, LiveError> {
        let recorded = self.file.map(|file| file.finish(io, blocks));
        let rolled = self.folder.map(|folder| folder.finish(io, blocks));
        let recovered = self.abandoned.map(AbandonedRecordings::finish);
        let recorded = recorded.transpose()?;
        Ok(recorded.into_iter().chain(rolled.into_iter().chain(recovered).flatten()).collect())
    }
}
