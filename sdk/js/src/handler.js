// What the entry module of a component imports besides `component.js` if it exports `handle`. Other
// components do not import the host's models.

import { infer, inferAll } from '#models';
import { useHost } from './models.js';

useHost({ infer, inferAll });

export { exportHandle } from './call.js';
