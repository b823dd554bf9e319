import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PulumiWorkspace } from '../pulumi-cli.ts';
import type { ProgramResource } from './program.ts';

const node = join(import.meta.dirname, '..', '..', 'bin', 'node');
const host = join(import.meta.dirname, 'main.ts');

/** Installs our own language host in the workspace, for the runtime `holdfast`. */
export async function installLanguageHost(workspace: PulumiWorkspace): Promise<void> {
  const plugin = join(workspace.dir, 'pulumi-home', 'plugins', 'language-holdfast-v1.0.0');
  await mkdir(plugin, { recursive: true });
  const script = `#!/bin/sh\nexec '${node}' --disable-warning=ExperimentalWarning '${host}' "$@"\n`;
  await writeFile(join(plugin, 'pulumi-language-holdfast'), script, { mode: 0o755 });
}

/** Also installs our own language host. */
export async function writeHostProgram(
  workspace: PulumiWorkspace,
  project: string,
  resources: readonly ProgramResource[],
): Promise<void> {
  await installLanguageHost(workspace);
  await workspace.writeProgram(`name: ${project}\nruntime: holdfast\n`);
  await writeFile(join(workspace.programDir, 'program.json'), JSON.stringify(resources));
}
