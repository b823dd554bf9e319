import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PulumiWorkspace } from './pulumi-cli.ts';

const node = join(import.meta.dirname, '..', 'bin', 'node');
const host = join(import.meta.dirname, 'policy-host', 'main.ts');

/** A policy pack that allows no resources of a type. */
export interface PackRules {
  readonly name: string;
  readonly version: string;
  readonly forbiddenType: string;
}

/** Writes a policy pack for our own policy host, and installs the host in the workspace. Returns the pack's directory. */
export async function writePolicyPack(workspace: PulumiWorkspace, rules: PackRules): Promise<string> {
  const plugin = join(workspace.dir, 'pulumi-home', 'plugins', 'language-holdfast-v1.0.0');
  await mkdir(plugin, { recursive: true });
  const script = `#!/bin/sh\nexec '${node}' --disable-warning=ExperimentalWarning '${host}' "$@"\n`;
  await writeFile(join(plugin, 'pulumi-language-holdfast'), script, { mode: 0o755 });
  const directory = join(workspace.dir, `${rules.name}-${rules.version}`);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'PulumiPolicy.yaml'), `runtime: holdfast\nversion: ${rules.version}\n`);
  await writeFile(join(directory, 'policy.json'), JSON.stringify({ ...rules, policy: `${rules.name}-rule` }));
  return directory;
}
