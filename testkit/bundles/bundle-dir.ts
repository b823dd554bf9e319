import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');
const keptMs = 24 * 3_600_000;

/**
 * Returns the directory of a bundle in node_modules. `build` fills it, unless it was built from the same inputs before. Removes bundles of
 * earlier days.
 */
export async function bundleDir(
  name: string,
  inputs: readonly (string | Buffer)[],
  build: (dir: string) => Promise<unknown>,
): Promise<string> {
  const hash = createHash('sha256');
  const recipes = (await listSources(import.meta.dirname)).map((file) => readFile(file));
  for (const input of [await readFile(join(root, 'package-lock.json')), ...(await Promise.all(recipes)), ...inputs]) {
    hash.update(`${input.length} `).update(input);
  }
  const parent = join(root, 'node_modules/.cache/holdfast');
  const dir = join(parent, `${name}-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(dir)) return dir;
  await removeOld(parent, name);
  const scratch = join(parent, `scratch-${randomBytes(6).toString('hex')}`);
  await mkdir(scratch, { recursive: true });
  try {
    await build(scratch);
    await rename(scratch, dir);
  } catch (error) {
    await rm(scratch, { recursive: true, force: true });
    // Another run was faster.
    if (!existsSync(dir)) throw error;
  }
  return dir;
}

/** Paths of TypeScript files, sorted. */
export async function listSources(directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true });
  return names
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => join(directory, name));
}

async function removeOld(parent: string, name: string): Promise<void> {
  await mkdir(parent, { recursive: true });
  for (const found of await readdir(parent)) {
    if (!found.startsWith(`${name}-`)) continue;
    // Another worker may have removed the directory.
    const details = await stat(join(parent, found)).catch(() => null);
    if (details && details.mtimeMs < Date.now() - keptMs)
      await rm(join(parent, found), { recursive: true, force: true });
  }
}
