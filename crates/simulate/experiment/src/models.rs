//! Trained models that partitioners and policies are given, as files.
//!
//! A file is read before anything is replayed, once for all cases that name it, where a case's
//! partitioner or policy needs it; others do not hear it.

use crate::ExperimentError;
use crate::foreign::ForeignPolicies;
use crate::needs::Needs;
use crate::spec::{CharacterizerSpec, KindsSpec, ModelFile, Scheme, Spec, TenantSpec};
use cachewright_model::Model;
use cachewright_partition::{Models, Need};
use cachewright_policy::rc_rnn::labels;
use cachewright_policy::{ForeignCode, Need as PolicyNeed, Policy};
use cachewright_types::seed::mix;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the keys of models of a policy begin.
const POLICY_KEY: &str = "cache.models.";

/// The models of some cases.
#[derive(Default)]
pub struct Library {
    read: Vec<(ModelFiles, Arc<Models>)>,
    caching: Vec<((Scheme, KindsSpec), Arc<Caching>)>,
    foreign: ForeignPolicies,
}

/// The models of a policy, which it has been seen to take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Caching {
    /// Each by the kind of workload it was trained on.
    pub files: Vec<(String, Vec<u8>)>,
    /// The kind to begin with.
    pub first: Option<String>,
    /// What says which kind runs, and its model.
    pub characterizer: Option<(CharacterizerSpec, Vec<u8>)>,
    /// The code that decides, where it stands outside.
    pub foreign: Option<ForeignCode>,
}

impl Caching {
    /// An empty cache of the policy with its models or its code.
    pub fn with_models<P: Policy>(&self, mut policy: P) -> P {
        self.foreign.iter().for_each(|code| policy.attach_code(code));
        // Refused files do not come here: the library tried them on a policy of this name.
        if !self.files.is_empty() && policy.load_models(&self.files).is_ok() {
            self.first.iter().for_each(|kind| policy.set_workload(kind));
            if let Some((spec, model)) = &self.characterizer
                && let Ok(characterizer) = spec.with_model(model)
            {
                policy.characterize(characterizer, spec.every.0);
            }
        }
        policy
    }
}

/// The files of tenants, and the file of all.
type ModelFiles = (Vec<Vec<PathBuf>>, Option<PathBuf>);

impl Library {
    /// Nothing read yet; policies of code outside are found among `foreign`.
    pub fn with(foreign: &ForeignPolicies) -> Library {
        Library { foreign: foreign.clone(), ..Library::default() }
    }

    /// The models that the partitioner of `spec` needs, as far as the stack file names them.
    /// Errors: a file that cannot be read or is no model, by its key.
    pub fn models(&mut self, spec: &Spec, needs: &Needs) -> Result<Arc<Models>, ExperimentError> {
        let origin = spec.origin.as_path();
        let each: Vec<(String, &ModelFile)> = spec
            .tenants
            .iter()
            .enumerate()
            .filter(|_| needs.partitioner_needs(Need::Model))
            .filter_map(|(index, tenant)| Some((index, tenant.model.as_ref()?)))
            .map(|(index, model)| (format!("tenant[{}].model", index + 1), model))
            .collect();
        let joint = spec.cache.model.as_ref();
        let joint = joint.filter(|_| needs.partitioner_needs(Need::JointModel));
        let modelled = spec.tenants.iter().filter(|_| needs.partitioner_needs(Need::Model));
        let of_tenant = |tenant: &TenantSpec| {
            let files = tenant.model.iter().chain(&tenant.model_updates);
            files.map(|model| model.path.clone()).collect()
        };
        let paths = modelled.clone().map(of_tenant).collect();
        let files: ModelFiles = (paths, joint.map(|model| model.path.clone()));
        if let Some((_, known)) = self.read.iter().find(|(other, _)| *other == files) {
            return Ok(Arc::clone(known));
        }
        let each: Result<Vec<Vec<u8>>, ExperimentError> =
            each.iter().map(|(name, model)| read(name, model, origin)).collect();
        let joint = joint.map(|model| read("cache.model", model, origin)).transpose()?;
        let updates = |(index, tenant): (usize, &TenantSpec)| {
            let key = format!("tenant[{}].model_updates", index + 1);
            tenant.model_updates.iter().map(|model| read(&key, model, origin)).collect()
        };
        let later: Result<_, ExperimentError> = modelled.enumerate().map(updates).collect();
        let later = later?;
        let models = Arc::new(Models { each: each?, later, joint });
        self.read.push((files, Arc::clone(&models)));
        Ok(models)
    }
}

impl Library {
    /// The models or the code that the policy of `spec` needs, as far as the stack file names
    /// them. Errors: code that is not found, or makes no cache; a file that cannot be read, is no
    /// model, or is one that the policy cannot use.
    pub fn caching(&mut self, spec: &Spec, needs: &Needs) -> Result<Arc<Caching>, ExperimentError> {
        let origin = spec.origin.as_path();
        let refuse = |message| ExperimentError::spec(origin, message);
        let named = &spec.cache.policy;
        let kinds = &spec.cache.kinds;
        let code = needs.policy_needs(PolicyNeed::Code);
        let models = needs.policy_needs(PolicyNeed::Model) && !kinds.files.is_empty();
        if !code && !models {
            return Ok(Arc::default());
        }
        let key = (named.clone(), kinds.clone());
        if let Some((_, known)) = self.caching.iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(known));
        }
        if code {
            let found = self.foreign.find(named, origin);
            let foreign = found.map_err(|error| refuse(format!("`cache.policy`: {error}")))?;
            let caching = Arc::new(Caching { foreign, ..Caching::default() });
            self.caching.push((key, Arc::clone(&caching)));
            return Ok(caching);
        }
        let file = |(kind, file): &(String, ModelFile)| {
            Ok((kind.clone(), read(&format!("{POLICY_KEY}{kind}"), file, origin)?))
        };
        let files: Result<Vec<_>, ExperimentError> = kinds.files.iter().map(file).collect();
        let characterizer = kinds
            .characterizer
            .as_ref()
            .map(|characterizer| with_model(characterizer, kinds, origin))
            .transpose()?;
        let (first, foreign) = (kinds.first.clone(), None);
        let caching = Caching { files: files?, first, characterizer, foreign };
        cachewright_policy::registry::boxed(&named.name, &named.pairs, 0, spec.seed)
            .map_err(|error| refuse(format!("`cache.policy`: {error}")))?
            .load_models(&caching.files)
            .map_err(|error| {
                let name = &named.name;
                refuse(format!("`cache.models`: found a file that `{name}` cannot use: {error}"))
            })?;
        let caching = Arc::new(caching);
        self.caching.push((key, Arc::clone(&caching)));
        Ok(caching)
    }
}

/// The characterizer of a stack with its model. Errors: no file, or one that it cannot use; no kind
/// that it tells apart has a model.
fn with_model(
    characterizer: &CharacterizerSpec,
    kinds: &KindsSpec,
    origin: &Path,
) -> Result<(CharacterizerSpec, Vec<u8>), ExperimentError> {
    let key = "cache.characterize.model";
    let refuse = |error| {
        let name = &characterizer.named.name;
        let message = format!("`{key}`: found a file that `{name}` cannot use: {error}");
        ExperimentError::spec(origin, message)
    };
    let model = read(key, &characterizer.model, origin)?;
    let found = characterizer.with_model(&model).map_err(refuse)?;
    kinds.check_kinds(&*found).map_err(refuse)?;
    Ok((characterizer.clone(), model))
}

/// A model's bytes.
fn read(key: &str, model: &ModelFile, origin: &Path) -> Result<Vec<u8>, ExperimentError> {
    let path = model.path.display();
    let refuse = |message| ExperimentError::spec(origin, message);
    let bytes = std::fs::read(&model.path).map_err(|error| {
        let found = match error.kind() {
            ErrorKind::NotFound => format!("no file `{path}`"),
            ErrorKind::IsADirectory => format!("the folder `{path}`"),
            _ => format!("`{path}`, which cannot be read ({error})"),
        };
        refuse(format!("`{key}`: found {found}, expected a model file"))
    })?;
    // Labels in place of a model: the policy that takes them reads them.
    if !(key.starts_with(POLICY_KEY) && bytes.starts_with(labels::MAGIC)) {
        Model::load(&bytes)
            .map_err(|error| refuse(format!("`{key}`: found no model in `{path}`: {error}")))?;
    }
    Ok(bytes)
}

/// A number that differs for different models, but for accidents; 0 without any.
pub fn fingerprint(models: &Models, caching: &Caching) -> u64 {
    let characterizers = caching.characterizer.iter().map(|(_, bytes)| bytes);
    let of_policy = caching.files.iter().map(|(_, bytes)| bytes).chain(characterizers);
    let later = models.later.iter().flatten();
    let files = models.each.iter().chain(later).chain(&models.joint).chain(of_policy);
    let file = |hash: u64, bytes: &Vec<u8>| {
        bytes.iter().fold(mix(hash ^ bytes.len() as u64), |hash, byte| mix(hash ^ u64::from(*byte)))
    };
    files.fold(0, file)
}
