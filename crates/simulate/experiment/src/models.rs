//! Trained models that partitioners are given, as files.
//!
//! For: reading them before anything is replayed, once for all cases that name the same. Must never
//! know: what is computed from them. A file is read where a case's partitioner needs it; others do
//! not hear it.

use crate::ExperimentError;
use crate::spec::{ModelFile, Spec};
use cachewright_infer::Model;
use cachewright_partition::{Models, Need};
use cachewright_types::seed::mix;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The models of some cases.
#[derive(Default)]
pub struct Library {
    read: Vec<(Files, Arc<Models>)>,
}

/// The files of tenants, and the file of all.
type Files = (Vec<PathBuf>, Option<PathBuf>);

impl Library {
    /// The models that the partitioner of `spec` needs, as far as the stack file names them.
    /// Errors: a file that cannot be read or is no model, by its key.
    pub fn of(&mut self, spec: &Spec, origin: &Path) -> Result<Arc<Models>, ExperimentError> {
        let entry = cachewright_partition::entry(&spec.cache.partition.name).ok();
        let needs = |need| entry.is_some_and(|entry| entry.needs.contains(&need));
        let each: Vec<(String, &ModelFile)> = spec
            .tenants
            .iter()
            .enumerate()
            .filter(|_| needs(Need::Model))
            .filter_map(|(at, tenant)| Some((at, tenant.model.as_ref()?)))
            .map(|(at, model)| (format!("tenant[{}].model", at + 1), model))
            .collect();
        let joint = spec.cache.model.as_ref().filter(|_| needs(Need::JointModel));
        let paths = each.iter().map(|(_, model)| model.path.clone()).collect();
        let files: Files = (paths, joint.map(|model| model.path.clone()));
        if let Some((_, known)) = self.read.iter().find(|(other, _)| *other == files) {
            return Ok(Arc::clone(known));
        }
        let each: Result<Vec<Vec<u8>>, ExperimentError> =
            each.iter().map(|(name, model)| read(name, model, origin)).collect();
        let joint = joint.map(|model| read("cache.model", model, origin)).transpose()?;
        let models = Arc::new(Models { each: each?, joint });
        self.read.push((files, Arc::clone(&models)));
        Ok(models)
    }
}

/// A model's bytes.
fn read(key: &str, model: &ModelFile, origin: &Path) -> Result<Vec<u8>, ExperimentError> {
    let path = model.path.display();
    let refuse = |message| ExperimentError::Spec { origin: origin.to_owned(), message };
    let bytes = std::fs::read(&model.path).map_err(|error| {
        refuse(format!("`{key}`: found no file `{path}` ({error}), expected a model"))
    })?;
    Model::load(&bytes)
        .map_err(|error| refuse(format!("`{key}`: found no model in `{path}`: {error}")))?;
    Ok(bytes)
}

/// A number that differs for different models, but for accidents; 0 without any.
pub fn fingerprint(models: &Models) -> u64 {
    let files = models.each.iter().chain(&models.joint);
    let file = |hash: u64, bytes: &Vec<u8>| {
        bytes.iter().fold(mix(hash ^ bytes.len() as u64), |hash, byte| mix(hash ^ u64::from(*byte)))
    };
    files.fold(0, file)
}
