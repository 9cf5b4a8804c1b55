// Files that the plugin reads: those in its folder `assets/`, and those that its pipeline names.

import * as host from '#host';
import { Body } from './body.js';
import { Internal } from './failure.js';

/** The files. */
export const assets = {
  open(name) {
    if (typeof name !== 'string') throw new TypeError('open: the name of the asset is not a string');
    try {
      return new Body(host.openAsset(name));
    } catch (error) {
      throw error?.payload?.tag === 'not-found' ? new Internal(error.payload.val) : error;
    }
  },
};
