//! Compares bound outputs with those of ordinary runs. This is CUDA's code with ordinary memory in
//! place of pinned memory.

use ort::memory::MemoryInfo;

use super::*;
use crate::tests::{backends, models, options};

fn model(name: &str) -> Vec<u8> {
    std::fs::read(models().join(format!("{name}/{name}.onnx"))).unwrap()
}

/// An instance whose outputs are bound to ordinary memory, and a pool of the same memory.
fn bound(name: &str) -> (Instance, BufferPool) {
    let runtime = backends().onnxruntime.as_ref().unwrap();
    let cpu = ProviderKind::Cpu;
    let (session, memory) = runtime.session(&model(name), &options(cpu), cpu).unwrap();
    let allocator = || pinned::allocator(&session, &MemoryInfo::default());
    let (pinned, staging) = (allocator(), pinned::staging(allocator().unwrap()));
    let outputs = session.outputs().iter().map(describe).collect::<Result<_, _>>().unwrap();
    let pool = BufferPool::new(1 << 20);
    let runs = Runs::new(memory, &Keeping { arena: true, is_steady: true });
    let runs = Arc::new(runs.unwrap());
    (Instance { session, runs, outputs, rows_are_dynamic: true, pool, pinned }, staging)
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
fn bound_outputs_are_those_of_an_ordinary_run_and_stay_so() {
    for name in ["digits", "ranker"] {
        let mut ordinary =
            backends().load(&model(name), &options(ProviderKind::Cpu)).unwrap().instances.remove(0);
        let (mut instance, staging) = bound(name);
        let info = describe(&instance.session.inputs()[0]).unwrap();
        // Small batches are copied and large ones are kept; both orders occur.
        let batches = [1, 7, 5000, 3, 5000, 600, 2].into_iter().enumerate();
        let answers: Vec<_> = batches
            .map(|(seed, rows)| {
                let input = input(&staging, &info, rows, seed);
                let bound = instance.run(std::slice::from_ref(&input)).unwrap().remove(0);
                let expected = ordinary.run(&[input]).unwrap().remove(0);
                assert_eq!(bound.shape(), expected.shape());
                (bound, expected)
            })
            .collect();
        assert!(instance.pinned.is_some(), "{name}: was not bound");
        // Compared at the end, because later batches could have overwritten earlier answers.
        for (bound, expected) in answers {
            assert!(bound.as_bytes() == expected.as_bytes(), "{name}, {} rows", bound.rows());
        }
    }
}

#[test]
fn outputs_of_other_shapes_than_the_model_says_are_not_bound() {
    let (mut instance, pool) = bound("ranker");
    let input_info = describe(&instance.session.inputs()[0]).unwrap();
    // The real dimension is 1.
    instance.outputs[0].dims[1] = Some(2);
    let outputs = instance.run(&[input(&pool, &input_info, 4, 0)]).unwrap();
    assert_eq!(outputs[0].shape(), [4, 1]);
    assert!(instance.pinned.is_none());

    // A failure that also occurs without the binding is not the binding's fault.
    instance.pinned = pinned::allocator(&instance.session, &MemoryInfo::default());
    let wrong = TensorInfo { dims: vec![None, Some(3)], ..input_info };
    assert!(instance.run(&[input(&pool, &wrong, 4, 0)]).is_err());
    assert!(instance.pinned.is_some());
}

#[test]
fn an_input_handed_back_is_not_the_inputs_memory() {
    let fixtures = models().join("../host/app/tests/fixtures");
    let onnx = std::fs::read(fixtures.join("handed-back.onnx")).unwrap();
    let mut model =
        backends().load(&onnx, &options(ProviderKind::Cpu)).unwrap().instances.remove(0);
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
