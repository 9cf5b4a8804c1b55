// The models of unit tests.

export { infer, inferAll } from '../reference/models.js';
