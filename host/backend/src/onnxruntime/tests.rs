//! Runs on batches that lie in a session's memory. This is CUDA's code with ordinary memory in
//! place of pinned memory.

use ort::memory::MemoryInfo;

use gristmill_core::Dtype;

use super::*;
use crate::RowProof;
use crate::tests::{backends, models, options};

fn model(name: &str) -> Vec<u8> {
    std::fs::read(models().join(format!("{name}/{name}.onnx"))).unwrap()
}

/// A pool of the memory of a session of the model `name`.
fn staging(name: &str) -> BufferPool {
    let runtime = backends().onnxruntime.as_ref().unwrap();
    let cpu = ProviderKind::Cpu;
    let onnx = model(name);
    let source = ModelSource::open((&onnx).into()).unwrap();
    let (session, _) = runtime.session(&source, &options(cpu), cpu).unwrap();
    pinned::staging(&session, &MemoryInfo::default()).unwrap()
}

/// Rows that differ from each other and from those of other seeds.
fn input(pool: &BufferPool, info: &TensorInfo, rows: usize, seed: usize) -> Tensor {
    let shape: gristmill_core::Shape = info.dims.iter().map(|dim| dim.unwrap_or(rows)).collect();
    let values: Vec<f32> = (0..shape.iter().product())
        .map(|at| ((at * 31 + seed * 17) % 101) as f32 / 101.0)
        .collect();
    Tensor::new(Dtype::Float32, shape, pool.copy_from(bytemuck::cast_slice(&values))).unwrap()
}

#[test]
fn batches_staged_in_a_sessions_memory_are_computed_as_others() {
    for name in ["digits", "ranker"] {
        let mut model = backends()
            .load(&model(name), &options(ProviderKind::Cpu), &RowProof::default())
            .unwrap();
        let (staging, ordinary) = (staging(name), BufferPool::new(1 << 20));
        assert!(staging.is_sourced());
        // Small outputs are copied and large ones are kept; both orders occur.
        let batches = [1, 7, 5000, 3, 5000, 600, 2].into_iter().enumerate();
        let answers: Vec<_> = batches
            .map(|(seed, rows)| {
                let [staged, other] = [&staging, &ordinary].map(|pool| {
                    let input = input(pool, &model.info.inputs[0], rows, seed);
                    model.instances[0].run(&[input]).unwrap().remove(0)
                });
                assert_eq!(staged.shape(), other.shape());
                (staged, other)
            })
            .collect();
        // Compared at the end, because later batches could have overwritten earlier answers.
        for (staged, other) in answers {
            assert!(staged.as_bytes() == other.as_bytes(), "{name}, {} rows", other.rows());
        }
    }
}

#[test]
fn an_input_handed_back_is_not_the_inputs_memory() {
    let fixtures = models().join("../host/app/tests/fixtures");
    let onnx = std::fs::read(fixtures.join("handed-back.onnx")).unwrap();
    let mut model = backends()
        .load(&onnx, &options(ProviderKind::Cpu), &RowProof::default())
        .unwrap()
        .instances
        .remove(0);
    let pool = BufferPool::new(1 << 20);
    // Large enough that outputs are kept and not copied, if they are not an input's.
    let run = |value: f32, model: &mut Box<dyn Model>| {
        let values = vec![value; 64 * 128];
        let buffer = pool.copy_from(bytemuck::cast_slice(&values));
        let shape = [64, 128].as_slice().into();
        model.run(&[Tensor::new(Dtype::Float32, shape, buffer).unwrap()]).unwrap()
    };
    let first = run(1.0, &mut model);
    let second = run(2.0, &mut model);
    for (outputs, value) in [(&first, 1.0), (&second, 2.0)] {
        assert!(outputs[0].as_f32().unwrap().iter().all(|element| *element == -value));
        assert!(outputs[1].as_f32().unwrap().iter().all(|element| *element == value));
    }
}
