import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { buildPlan, inWords } from './build-plan.ts';
import { CommandFailedError, report, ToolUnavailableError } from './command.ts';
import { findFittingPulumi } from './pulumi-on-path.ts';
import { recipes } from './recipes.ts';
import { ensureSystemProgram } from './system-package.ts';
import { buildDir, type CachedBuild, ensureBuilt } from './tool-cache.ts';

const systemPrograms = {
  'redis-server': () => ensureSystemProgram(['redis-server'], 'redis-server'),
  faketime: () => ensureSystemProgram(['faketime'], 'faketime'),
  caddy: () => ensureSystemProgram(['caddy'], 'caddy'),
  chromium: () => ensureSystemProgram(['chromium', 'chromium-browser', 'google-chrome'], 'chromium'),
} satisfies Record<string, () => Promise<string>>;

/** A tool that the tests can ask for. */
export type ToolName = keyof typeof recipes | keyof typeof systemPrograms;

/** The absolute path of each tool's executable. */
export type Toolchain<Name extends ToolName = ToolName> = Record<Name, string>;

const knownTools = [...Object.keys(recipes), ...Object.keys(systemPrograms)] as ToolName[];

/** Every tool except the browser, which is large and wanted by few. */
export const defaultTools = knownTools.filter((name) => name !== 'chromium');

/** Fetched rather than compiled, so that it can be made beside a tool that is compiled. */
const fetched: readonly ToolName[] = [...(Object.keys(systemPrograms) as ToolName[]), 'schemathesis'];

/**
 * Makes sure that tools are on this machine and returns their paths. What is lacking is built into the cache, which
 * takes minutes the first time and milliseconds afterwards. Throws ToolUnavailableError when a tool cannot be had.
 */
export async function ensureToolchain<Name extends ToolName>(options: {
  only: readonly Name[];
}): Promise<Toolchain<Name>>;
export async function ensureToolchain(): Promise<Toolchain<Exclude<ToolName, 'chromium'>>>;
export async function ensureToolchain(options?: { only: readonly ToolName[] }): Promise<Partial<Toolchain>> {
  const paths: Partial<Toolchain> = {};
  for (const name of new Set(options?.only ?? defaultTools)) paths[name] = await ensureTool(name);
  return paths;
}

/** What came of making a tool. */
export type ToolOutcome = { path: string } | { error: ToolUnavailableError | CommandFailedError };

/**
 * Makes all tools, those that are fetched beside those that are compiled, and says how long it will take. What cannot be had does
 * not keep the others from being made.
 */
export async function makeTools(names: readonly ToolName[]): Promise<Map<ToolName, ToolOutcome>> {
  const outcomes = new Map<ToolName, ToolOutcome>();
  const lacking = await listLackingBuilds(names);
  for (const { label, typicalSeconds } of lacking) buildPlan.expect(label, typicalSeconds);
  if (lacking.length > 0) {
    const labels = lacking.map(({ label }) => label).join(', ');
    report(`to be made, once: ${labels}; about ${inWords(buildPlan.secondsLeft())} on two idle cores`);
  }
  const make = async (lane: readonly ToolName[]): Promise<void> => {
    for (const name of lane) {
      try {
        outcomes.set(name, { path: await ensureTool(name) });
      } catch (error) {
        if (!(error instanceof ToolUnavailableError || error instanceof CommandFailedError)) throw error;
        outcomes.set(name, { error });
      }
    }
  };
  await Promise.all([
    // One after the other: each of these builds uses all processors by itself, and finds compiled what it shares with the last.
    make(names.filter((name) => !fetched.includes(name))),
    make(names.filter((name) => fetched.includes(name))),
    downloadAhead(lacking),
  ]);
  return outcomes;
}

/** Fetches what later builds need while the first one compiles. */
async function downloadAhead(builds: readonly CachedBuild[]): Promise<void> {
  for (const { download } of builds.slice(1)) {
    // The build itself says what is wrong.
    await download?.().catch(() => {});
  }
}

async function listLackingBuilds(names: readonly ToolName[]): Promise<CachedBuild[]> {
  const lacking = new Map<string, CachedBuild>();
  for (const name of names) {
    if (!isBuilt(name) || (await findInstead(name)) !== null) continue;
    for (const build of await recipes[name].builds()) {
      if (!existsSync(buildDir(build))) lacking.set(build.label, build);
    }
  }
  return [...lacking.values()];
}

async function ensureTool(name: ToolName): Promise<string> {
  if (!isBuilt(name)) return systemPrograms[name]();
  const instead = await findInstead(name);
  if (instead !== null) return instead;
  const { builds, executable } = recipes[name];
  let dir = '';
  for (const build of await builds()) dir = await ensureBuilt(build);
  return join(dir, executable);
}

let pulumiOnPath: Promise<string | null> | undefined;

/** What is on this machine already and takes the place of a build. */
async function findInstead(name: ToolName): Promise<string | null> {
  if (name !== 'pulumi-3.255') return null;
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

// Without top-level await: Jest's set-up of a run loads this by `require`.
if (import.meta.main)
  void main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
