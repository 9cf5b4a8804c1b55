// Lists of objects in an answer, which the host writes.

import { placed } from './answer.js';
import { NdArray } from './numpy.js';
import { Tensor } from './tensor.js';

/** A list of objects in JSON, one for each element of its columns. */
export class Records {
  #columns;

  constructor(columns) {
    this.#columns = Object.entries(columns).map(([key, column]) => {
      if (!(Tensor.is(column) || column instanceof NdArray)) {
        throw new TypeError(`the column ${JSON.stringify(key)} is neither a Tensor nor an NdArray`);
      }
      return [key, column];
    });
  }

  toJSON() {
    const columns = this.#columns.map(([key, column]) => {
      const tensor = column instanceof NdArray ? column.tensor() : column;
      return { key, elements: Tensor.raw(tensor) };
    });
    return placed({ tag: 'objects', val: columns }, 'Records');
  }
}
