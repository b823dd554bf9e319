import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildPlan, durationText } from './build-plan.ts';
import { CommandFailedError, report, ToolUnavailableError } from './command.ts';
import { findFittingPulumi } from './pulumi-on-path.ts';
import { recipes } from './recipes.ts';
import { ensureSystemProgram } from './system-package.ts';
import { buildDir, type CachedBuild, ensureBuilt } from './tool-cache.ts';

/** Chromium without its window system, which takes a third less CPU time. Debian has a package of it. */
const chromiumShell = 'chromium-headless-shell';

const systemPrograms = {
  'redis-server': () => ensureSystemProgram(['redis-server'], 'redis-server'),
  caddy: () => ensureSystemProgram(['caddy'], 'caddy'),
  pgbouncer: () => ensureSystemProgram(['pgbouncer'], 'pgbouncer'),
  zsh: () => ensureSystemProgram(['zsh'], 'zsh'),
  fish: () => ensureSystemProgram(['fish'], 'fish'),
  [chromiumShell]: () => ensureSystemProgram([chromiumShell], chromiumShell),
  chromium: () => ensureSystemProgram([chromiumShell, 'chromium', 'chromium-browser', 'google-chrome'], 'chromium'),
} satisfies Record<string, () => Promise<string>>;

/** A tool that tests can use. */
export type ToolName = keyof typeof recipes | keyof typeof systemPrograms;

/** The absolute path of each tool's executable. */
export type Toolchain<Name extends ToolName = ToolName> = Record<Name, string>;

const knownTools = [...Object.keys(recipes), ...Object.keys(systemPrograms)] as ToolName[];

/** All tools except browsers, which are large and rarely needed. */
export const defaultTools = knownTools.filter((name) => name !== 'chromium' && name !== chromiumShell);

/** Tools that are downloaded rather than compiled, so that they can be prepared while another tool compiles. */
const downloaded: readonly ToolName[] = [
  ...(Object.keys(systemPrograms) as ToolName[]),
  'schemathesis',
  'kubernetes-schemas',
  'postgres-15',
  'postgres-17',
  'openapi-typescript',
];

/** Missing tools are built into the cache, which takes minutes the first time and milliseconds afterwards. Throws ToolUnavailableError. */
export async function ensureToolchain<Name extends ToolName>(options: {
  only: readonly Name[];
}): Promise<Toolchain<Name>>;
export async function ensureToolchain(): Promise<Toolchain<Exclude<ToolName, 'chromium' | 'chromium-headless-shell'>>>;
export async function ensureToolchain(options?: { only: readonly ToolName[] }): Promise<Partial<Toolchain>> {
  const paths: Partial<Toolchain> = {};
  for (const name of new Set(options?.only ?? defaultTools)) paths[name] = await ensureTool(name);
  return paths;
}

export type ToolOutcome = { path: string } | { error: ToolUnavailableError | CommandFailedError };

/** Downloads in parallel with compilations, and reports the estimated time. A tool that is not available does not prevent the others. */
export async function makeTools(names: readonly ToolName[]): Promise<Map<ToolName, ToolOutcome>> {
  const outcomes = new Map<ToolName, ToolOutcome>();
  const missing = await listMissingBuilds(names);
  for (const { label, typicalSeconds } of missing) buildPlan.expect(label, typicalSeconds);
  if (missing.length > 0) {
    const labels = missing.map(({ label }) => label).join(', ');
    report(`to be built once: ${labels}; about ${durationText(buildPlan.secondsLeft())} on two idle cores`);
  }
  const makeInOrder = async (group: readonly ToolName[]): Promise<void> => {
    for (const name of group) {
      try {
        outcomes.set(name, { path: await ensureTool(name) });
      } catch (error) {
        if (!(error instanceof ToolUnavailableError || error instanceof CommandFailedError)) throw error;
        outcomes.set(name, { error });
      }
    }
  };
  await Promise.all([
    // One after the other: each build uses all processors, and reuses packages that the previous one has compiled.
    makeInOrder(names.filter((name) => !downloaded.includes(name))),
    makeInOrder(names.filter((name) => downloaded.includes(name))),
    downloadAhead(missing),
  ]);
  return outcomes;
}

/** Downloads the dependencies of later builds while the first one compiles. */
async function downloadAhead(builds: readonly CachedBuild[]): Promise<void> {
  for (const { download } of builds.slice(1)) {
    // The build itself reports the error.
    await download?.().catch(() => {});
  }
}

async function listMissingBuilds(names: readonly ToolName[]): Promise<CachedBuild[]> {
  const missing = new Map<string, CachedBuild>();
  for (const name of names) {
    if (!isBuilt(name) || (await findSubstitute(name)) !== null) continue;
    for (const build of await recipes[name].builds()) {
      if (!existsSync(buildDir(build))) missing.set(build.label, build);
    }
  }
  return [...missing.values()];
}

async function ensureTool(name: ToolName): Promise<string> {
  if (!isBuilt(name)) return systemPrograms[name]();
  const substitute = await findSubstitute(name);
  if (substitute !== null) return substitute;
  const { builds, executable } = recipes[name];
  let dir = '';
  for (const build of await builds()) dir = await ensureBuilt(build);
  return join(dir, executable);
}

let pulumiOnPath: Promise<string | null> | undefined;

/** Returns the path of a program on this machine that can be used instead of a build; null if there is none. */
async function findSubstitute(name: ToolName): Promise<string | null> {
  if (name !== 'pulumi-3.276') return null;
  pulumiOnPath ??= findFittingPulumi();
  return pulumiOnPath;
}

function isBuilt(name: ToolName): name is keyof typeof recipes {
  return Object.hasOwn(recipes, name);
}

function isToolName(name: string): name is ToolName {
  return (knownTools as readonly string[]).includes(name);
}

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !isToolName(name));
  if (unknown.length > 0) {
    report(`no such tool: ${unknown.join(', ')}; known: ${knownTools.join(', ')}`);
    return 2;
  }
  const outcomes = await makeTools(names.length === 0 ? defaultTools : names.filter(isToolName));
  const paths: Partial<Toolchain> = {};
  let failed = false;
  for (const [name, outcome] of outcomes) {
    if ('path' in outcome) {
      paths[name] = outcome.path;
    } else {
      report(outcome.error.message);
      failed = true;
    }
  }
  process.stdout.write(`${JSON.stringify(paths, null, 2)}\n`);
  return failed ? 1 : 0;
}

// No top-level await, because Jest loads this with `require` in its global setup.
if (import.meta.main)
  void main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
