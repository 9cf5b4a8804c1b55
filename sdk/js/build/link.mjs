// Makes the SDK importable for unit tests and editors. The build does not need it.

import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BuildError } from './build-error.mjs';

const SDK = resolve(import.meta.dirname, '..');

/**
 * Make `node_modules/gristmill-plugin` in `folder` a link to this SDK, unless the folder has a
 * package of that name. Returns the link's path if it was made.
 */
export async function linkSdk(folder) {
  const modules = join(folder, 'node_modules');
  const path = join(modules, 'gristmill-plugin');
  // Someone else may have written the folder: a link would lead the changes below out of it.
  if ((await lstat(modules).catch(() => undefined))?.isSymbolicLink()) {
    throw new BuildError(`${modules} is a link: make it a folder`);
  }
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) {
    if (!found.isSymbolicLink() || (await readlink(path)) === SDK) return undefined;
    await rm(path);
  }
  await mkdir(modules, { recursive: true });
  await symlink(SDK, path, 'junction');
  return path;
}
