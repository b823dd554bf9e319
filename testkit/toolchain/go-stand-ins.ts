import { existsSync } from 'node:fs';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { runCommand } from './command.ts';

/** Packages that replace packages of a build's modules, under `folder/<path of the module>`. */
export interface StandIns {
  folder: string;
  modules: readonly string[];
}

export async function standInInputs({ folder }: StandIns): Promise<(string | Buffer)[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  files.sort();
  const contents = await Promise.all(files.map((file) => readFile(file)));
  return ['stand-ins-1', ...files.map((file) => file.slice(folder.length)), ...contents];
}

/**
 * Returns the flags for Go. A module whose stand-in has a go.mod is replaced completely; in other modules, only the files with a stand-in
 * are replaced. Go does not allow overlays in its module cache, so such a module is first replaced by a link to its directory in the cache.
 */
export async function prepareStandIns(
  go: string,
  env: Record<string, string>,
  moduleDir: string,
  { folder, modules }: StandIns,
  dir: string,
): Promise<string[]> {
  const replaced = new Map<string, string>();
  const overlay: Record<string, string> = {};
  for (const [index, module] of modules.entries()) {
    const standIn = join(folder, module);
    if (existsSync(join(standIn, 'go.mod'))) {
      replaced.set(module, standIn);
      continue;
    }
    const output = await runCommand(go, ['mod', 'download', '-json', module], { cwd: moduleDir, env });
    const link = join(dir, `module-${index}`);
    await symlink((JSON.parse(output) as { Dir: string }).Dir, link);
    replaced.set(module, link);
    for (const file of await readdir(standIn, { recursive: true })) {
      if (file.endsWith('.go')) overlay[join(link, file)] = join(standIn, file);
    }
  }
  const lines = [...replaced].map(([module, place]) => `replace ${module} => ${place}\n`);
  const [goMod, goSum] = await Promise.all(['go.mod', 'go.sum'].map((name) => readFile(join(moduleDir, name), 'utf8')));
  await writeFile(join(dir, 'go.mod'), `${goMod}\n${lines.join('')}`);
  await writeFile(join(dir, 'go.sum'), goSum as string);
  await writeFile(join(dir, 'overlay.json'), JSON.stringify({ Replace: overlay }));
  return ['-modfile', join(dir, 'go.mod'), '-overlay', join(dir, 'overlay.json')];
}
