//! Model files: read, the test vector replayed, one step computed.
#![no_main]

use cachewright_fuzz::checked;
use cachewright_model::Model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    match Model::load(input) {
        Err(error) => drop(checked(error.to_string())),
        Ok(model) => {
            let step = vec![0.5; model.architecture().inputs];
            let outputs: usize = model.architecture().heads.iter().map(|head| head.outputs).sum();
            if let Ok(found) = model.last(&step) {
                assert_eq!(found.len(), outputs);
            }
        }
    }
});
