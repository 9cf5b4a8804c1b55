//! Follows the rows through a graph, node by node.
//!
//! Invariant: for every file, [`WORK_MAX`] bounds its work and its memory, and [`DEPTH_MAX`] its
//! recursion.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tract_onnx::pb::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};

use super::attributes::Attributes;
use super::call::{Call, Outputs, Symbols};
use super::contents;
use super::dependence::Rows;
use super::fact::Fact;
use super::layout::either;
use super::obstacle::{Obstacle, Reason, start_of};
use super::operators;
use super::scope::{Frame, Opsets, Scope, plain};

/// Nodes, their inputs, outputs and attributes, and the dimensions and elements of their results.
const WORK_MAX: usize = 1_000_000;

/// Graphs in graphs and functions in functions.
const DEPTH_MAX: usize = 32;

/// Bytes or numbers of a name or an attribute that are as much work as a node.
const NAME: usize = 64;

type Inputs = Vec<Option<Rc<Fact>>>;

/// What ends the walk: nothing is known of the whole graph.
type Stopped = String;

/// One walk over a model.
pub(super) struct Walk<'a> {
    functions: HashMap<(&'a str, &'a str), Option<&'a FunctionProto>>,
    pub(super) symbols: Symbols,
    /// The tensors that nodes of the graph itself compute.
    pub(super) computed: Vec<(&'a str, Rc<Fact>)>,
    /// Those of the model.
    opsets: Opsets<'a>,
    work_left: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(model: &'a ModelProto) -> Self {
        let mut functions = HashMap::new();
        for function in &model.functions {
            let key = (plain(function.domain()), function.name());
            // Two of one name are none.
            functions.entry(key).and_modify(|each| *each = None).or_insert(Some(function));
        }
        let opsets = Opsets::new(&model.opset_import);
        let (symbols, computed) = (Symbols::default(), Vec::new());
        Self { functions, symbols, computed, opsets, work_left: WORK_MAX }
    }

    /// The facts of the outputs of `graph`, whose inputs are `inputs`.
    pub(super) fn run(
        &mut self,
        model: &'a ModelProto,
        graph: &'a GraphProto,
        inputs: Vec<(&'a str, Fact)>,
    ) -> Result<Vec<(&'a str, Rc<Fact>)>, Obstacle> {
        let opsets = Opsets::new(&model.opset_import);
        let frame = Frame { opsets, attributes: Attributes::default() };
        let mut scope = Scope::new(&frame);
        let outputs = || {
            for (name, fact) in inputs {
                self.define(&mut scope, name, Some(fact))?;
            }
            self.graph(graph, &mut scope, 0)
        };
        let outputs = outputs().map_err(Obstacle::of_model)?;
        let names = graph.output.iter().map(|output| &output.name[..]);
        Ok(names.zip(outputs).collect())
    }

    fn charge(&mut self, work: usize) -> Result<(), Stopped> {
        self.work_left = self.work_left.checked_sub(work).ok_or("the graph is too large")?;
        Ok(())
    }

    fn charge_names(&mut self, names: &[String]) -> Result<(), Stopped> {
        self.charge(names.iter().map(|name| 1 + name.len() / NAME).sum())
    }

    fn define(
        &mut self,
        scope: &mut Scope<'a, '_>,
        name: &'a str,
        fact: Option<Fact>,
    ) -> Result<(), Stopped> {
        let size = fact.as_ref().map_or(0, size_of);
        self.charge(1 + name.len() / NAME + size)?;
        // Runtimes differ in what they take it for, if they take it.
        if !scope.define(name, fact.map(Rc::new)) {
            return Err(format!("two tensors have the name `{}`", start_of(name)));
        }
        Ok(())
    }

    /// The facts of the outputs of `graph`. The scope has its inputs.
    fn graph(
        &mut self,
        graph: &'a GraphProto,
        scope: &mut Scope<'a, '_>,
        depth: usize,
    ) -> Result<Vec<Rc<Fact>>, Stopped> {
        for tensor in &graph.initializer {
            self.define(scope, &tensor.name, Some(contents::tensor(tensor)))?;
        }
        // Runtimes differ in whether a request can give one.
        if !graph.sparse_initializer.is_empty() {
            return Err("it has sparse weights".into());
        }
        for node in &graph.node {
            self.node(node, scope, depth)?;
        }
        let mut outputs = Vec::new();
        for output in &graph.output {
            self.charge(1 + output.name.len() / NAME)?;
            outputs.push(match scope.find(&output.name) {
                Some(Some(fact)) => Rc::clone(fact),
                _ => return Err(format!("nothing computes `{}`", start_of(&output.name))),
            });
        }
        Ok(outputs)
    }

    /// Define the outputs of `node`.
    fn node(
        &mut self,
        node: &'a NodeProto,
        scope: &mut Scope<'a, '_>,
        depth: usize,
    ) -> Result<(), Stopped> {
        let sizes = node.attribute.iter().map(|each| 1 + (each.ints.len() + each.s.len()) / NAME);
        self.charge(1 + sizes.sum::<usize>())?;
        self.charge_names(&node.input)?;
        let mut inputs = Inputs::new();
        for name in &node.input {
            inputs.push(match scope.find(name) {
                Some(fact) => fact.clone(),
                None if name.is_empty() => None,
                None => return Err(format!("nothing computes `{}`", start_of(name))),
            });
        }
        let is_mixed = |fact: &&Rc<Fact>| matches!(fact.rows, Rows::Mixed(_));
        let mixed = inputs.iter().flatten().find(is_mixed).map(|fact| Fact::clone(fact));
        let results = match &mixed {
            Some(_) => Ok(Vec::new()),
            None => self.results(node, inputs, scope, depth)?,
        };
        let (results, why) = match results {
            Ok(results) => (results, "this output of it is not known".into()),
            Err(why) => (Vec::new(), why),
        };
        let mut results = results.into_iter();
        for name in node.output.iter() {
            let result = results.next().unwrap_or_else(|| Err(why.clone()));
            let fact = result.and_then(Fact::checked);
            if !name.is_empty() {
                let fact =
                    mixed.clone().unwrap_or_else(|| fact.unwrap_or_else(|why| mix(node, &why)));
                self.define(scope, name, Some(fact))?;
                if depth == 0
                    && let Some(Some(fact)) = scope.find(name)
                {
                    self.computed.push((name, Rc::clone(fact)));
                }
            }
        }
        Ok(())
    }

    /// What the outputs of `node` are.
    fn results(
        &mut self,
        node: &'a NodeProto,
        inputs: Inputs,
        scope: &Scope<'a, '_>,
        depth: usize,
    ) -> Result<Outputs, Stopped> {
        let attributes = match Attributes::new(node, &scope.frame.attributes) {
            Ok(attributes) => attributes,
            Err(why) => return Ok(Err(why)),
        };
        let (domain, operator) = (plain(&node.domain), &node.op_type[..]);
        if let Some(function) = self.functions.get(&(domain, operator)).copied() {
            return match function {
                Some(function) if !operators::has_domain(domain) => {
                    self.function(function, inputs, attributes, depth + 1)
                }
                _ => Ok(Err("the operator is defined twice".into())),
            };
        }
        if domain.is_empty() && operator == "If" {
            return self.branches(&inputs, &attributes, scope, depth + 1);
        }
        let Some(opset) = scope.frame.opsets.version(domain) else {
            return Ok(Err("the version of the operator is not known".into()));
        };
        // A graph may use more than the inputs of its node.
        let has_graph =
            node.attribute.iter().any(|each| each.g.is_some() || !each.graphs.is_empty());
        let is_free = inputs.iter().flatten().all(|fact| fact.is_free());
        let is_free = is_free && !has_graph && !operators::is_random(operator);
        let (outputs, symbols) = (&node.output[..], &self.symbols);
        let call = Call { operator, opset, inputs, outputs, attributes, symbols };
        Ok(match operators::apply(domain, &call) {
            None => Err("the operator is not known".into()),
            Some(Err(_)) if is_free => Ok(vec![Ok(Fact::free(None)); outputs.len()]),
            Some(results) => results,
        })
    }

    fn function(
        &mut self,
        function: &'a FunctionProto,
        inputs: Inputs,
        attributes: Attributes<'a>,
        depth: usize,
    ) -> Result<Outputs, Stopped> {
        if depth > DEPTH_MAX {
            return Err("its functions are too deep".into());
        }
        if inputs.len() > function.input.len() {
            return Ok(Err("it has too many inputs".into()));
        }
        self.charge(function.opset_import.len())?;
        // Runtimes differ in which of two versions a body has.
        let differs = |import: &&OperatorSetIdProto| {
            let domain = plain(&import.domain);
            operators::has_domain(domain) && self.opsets.version(domain) != Some(import.version)
        };
        if let Some(import) = function.opset_import.iter().find(differs) {
            let domain = start_of(&import.domain);
            return Ok(Err(format!("its function has another version of `{domain}`").into()));
        }
        let frame = Frame { opsets: Opsets::new(&function.opset_import), attributes };
        let mut scope = Scope::new(&frame);
        let mut inputs = inputs.into_iter();
        for name in &function.input {
            let fact = inputs.next().flatten();
            self.define(&mut scope, name, fact.map(|fact| Fact::clone(&fact)))?;
        }
        for node in &function.node {
            self.node(node, &mut scope, depth)?;
        }
        self.charge_names(&function.output)?;
        let output = |name: &String| match scope.find(name) {
            Some(Some(fact)) => Ok(Fact::clone(fact)),
            _ => Err("its function does not compute this output".into()),
        };
        Ok(Ok(function.output.iter().map(output).collect()))
    }

    fn branches(
        &mut self,
        inputs: &[Option<Rc<Fact>>],
        attributes: &Attributes<'a>,
        scope: &Scope<'a, '_>,
        depth: usize,
    ) -> Result<Outputs, Stopped> {
        if depth > DEPTH_MAX {
            return Err("its graphs are too deep".into());
        }
        let branch = |name: &str| attributes.graph(name);
        let (yes, no) = match (branch("then_branch"), branch("else_branch")) {
            (Ok(yes), Ok(no)) => (yes, no),
            (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
        };
        let condition = inputs.first().and_then(Option::as_ref);
        let Some(condition) = condition.filter(|condition| condition.is_free()) else {
            return Ok(Err("the rows decide which of its branches runs".into()));
        };
        let taken = condition.ints().and_then(|ints| ints.first().copied());
        let facts = match taken {
            Some(0) => self.graph(no, &mut Scope::within(scope), depth)?,
            Some(_) => self.graph(yes, &mut Scope::within(scope), depth)?,
            None => {
                let yes = self.graph(yes, &mut Scope::within(scope), depth)?;
                let no = self.graph(no, &mut Scope::within(scope), depth)?;
                let both = yes.iter().zip(&no);
                return Ok(Ok(both.map(|(yes, no)| either(yes, no, &self.symbols)).collect()));
            }
        };
        Ok(Ok(facts.iter().map(|fact| Ok(Fact::clone(fact))).collect()))
    }
}

/// A measure of the memory that a fact takes.
fn size_of(fact: &Fact) -> usize {
    let elements = fact.elements.as_ref().map_or(0, Vec::len);
    fact.shape.as_ref().map_or(0, Vec::len) + elements
}

/// The result of `node` when the rows cannot be followed through it.
fn mix(node: &NodeProto, why: &str) -> Fact {
    let name = if node.name.is_empty() { node.output.first() } else { Some(&node.name) };
    let operator = start_of(&node.op_type);
    let operator = match plain(&node.domain) {
        "" => operator,
        domain => format!("{}.{operator}", start_of(domain)),
    };
    let node = start_of(name.map_or("", |name| name));
    Fact::new(Rows::Mixed(Arc::new(Reason { node, operator, why: why.to_owned() })), None)
}
