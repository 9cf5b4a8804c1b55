// Makes the SDK importable for unit tests and editors. The build does not need it.

import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const SDK = resolve(import.meta.dirname, '..');

/**
 * Make `node_modules/gristmill-plugin` in `folder` a link to this SDK, unless the folder has a
 * package of that name. Returns the link's path if it was made.
 */
export async function linkSdk(folder) {
  const path = join(folder, 'node_modules', 'gristmill-plugin');
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) {
    if (!found.isSymbolicLink() || (await readlink(path)) === SDK) return undefined;
    await rm(path);
  }
  await mkdir(join(folder, 'node_modules'), { recursive: true });
  await symlink(SDK, path, 'junction');
  return path;
}
