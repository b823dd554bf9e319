import { randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';

import type { HoldfastServer } from './holdfast-server.ts';
import { PulumiWorkspace, type WorkspaceOptions } from './pulumi-cli.ts';
import type { CliResult } from './pulumi-process.ts';
import { normalizeState, type StateResource } from './pulumi-state.ts';
import { type KeptState, referenceStates } from './reference-states.ts';

/** Unique, because the server may have projects of earlier runs. */
export function newProject(label: string): string {
  return `${label}-${randomBytes(4).toString('hex')}`;
}

/** Flags for a run without preview and prompts. */
export const unattended = ['--yes', '--skip-preview', '--non-interactive'] as const;

/** Flags for a run with one step at a time, so that failures always occur at the same point. */
export const inOrder = [...unattended, '--parallel', '1'] as const;

/** A project with a stack `dev`, created and selected. */
export class Scenario implements AsyncDisposable {
  readonly workspace: PulumiWorkspace;
  readonly project: string;
  /** States recorded by `keep`, in order. */
  readonly kept: KeptState[] = [];
  readonly #prefix: string;

  private constructor(workspace: PulumiWorkspace, project: string, prefix: string) {
    this.workspace = workspace;
    this.project = project;
    this.#prefix = prefix;
  }

  /** Creates a scenario on the server, or on the CLI's file backend if `server` is null. */
  static async create(server: HoldfastServer | null, options: ScenarioOptions = {}): Promise<Scenario> {
    const { project = newProject('e2e'), ...workspaceOptions } = options;
    const workspace = await (server?.workspace(workspaceOptions) ?? PulumiWorkspace.create(workspaceOptions));
    const scenario = new Scenario(workspace, project, server === null ? '' : `${server.organization}/${project}/`);
    await workspace.writeProgram({ name: project, runtime: 'yaml', resources: {} });
    await workspace.runOk(['stack', 'init', scenario.stackName('dev'), '--non-interactive']);
    return scenario;
  }

  /** Returns the name of a stack of this project as the backend expects it. */
  stackName(name: string): string {
    return `${this.#prefix}${name}`;
  }

  /** Returns the URN of a Thing in a stack. */
  thing(name: string, stack = 'dev'): string {
    return `urn:pulumi:${stack}::${this.project}::holdfast:index:Thing::${name}`;
  }

  /** Records the state of the selected stack for later comparisons. */
  async keep(label: string, options: { keepOrder?: boolean } = {}): Promise<void> {
    const state = await this.workspace.exportState({ showSecrets: true });
    // A refresh with a journal drops empty lists, but the file backend keeps them; both mean the same.
    for (const resource of state.deployment.resources ?? []) dropEmptyLists(resource, 'propertyDependencies');
    this.kept.push({ label, state: normalizeState(state, options) });
  }

  /** Like `keep`, including the order of the resources: for programs that are a single chain, whose order is fixed. */
  async keepInOrder(label: string): Promise<void> {
    await this.keep(label, { keepOrder: true });
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.workspace.dispose();
  }
}

export type ScenarioOptions = Pick<WorkspaceOptions, 'cli' | 'env'> & { project?: string };

/**
 * Runs the same steps on the server and on the CLI's file backend, and expects equal states from both: the states that the steps keep, and
 * the final one. A preview and a refresh of the server's stack must then find no changes. The file backend runs equal steps only once
 * (`referenceStates`).
 */
export async function expectSameAsFileBackend(
  server: HoldfastServer,
  steps: (scenario: Scenario) => Promise<void>,
  options: ScenarioOptions = {},
): Promise<void> {
  const project = options.project ?? newProject('twin');
  await using ours = await Scenario.create(server, { ...options, project });
  const run = async (scenario: Scenario): Promise<readonly KeptState[]> => {
    await steps(scenario);
    await scenario.keep('at the end');
    return scenario.kept;
  };
  const runReference = async (): Promise<readonly KeptState[]> => {
    await using theirs = await Scenario.create(null, { ...options, project });
    return await run(theirs);
  };
  // If two scenarios differ only in variables that the steps close over, the wrong reference makes the comparison fail.
  const inputs = [expect.getState().testPath, String(steps), options.cli, options.env];
  const both = [run(ours), referenceStates(inputs, project, runReference)] as const;
  // Both must settle, so that neither outlives the test.
  await Promise.allSettled(both);
  const [kept, reference] = await Promise.all(both);
  expect(kept.map(({ label }) => label)).toEqual(reference.map(({ label }) => label));
  for (const [at, { label, state }] of kept.entries()) {
    expect({ [label]: state }).toEqual({ [label]: reference[at]?.state });
  }
  await expectNothingToDo(ours.workspace);
}

export async function expectNothingToDo(workspace: PulumiWorkspace, stack?: string): Promise<void> {
  const selected = stack === undefined ? [] : ['--stack', stack];
  await workspace.runOk(['preview', '--expect-no-changes', '--non-interactive', ...selected]);
  await workspace.runOk(['refresh', '--preview-only', '--expect-no-changes', '--non-interactive', ...selected]);
}

/** Runs the CLI and expects it to fail with `text` in its output. Returns the whole output. */
export async function expectFailure(
  workspace: PulumiWorkspace,
  args: readonly string[],
  text: string | RegExp,
): Promise<string> {
  const result = await workspace.run(args);
  const output = outputOf(result);
  expect(output).toMatch(text);
  expect(result.exitCode).not.toBe(0);
  return output;
}

/** Returns the whole output of a run. */
export function outputOf({ stdout, stderr }: Pick<CliResult, 'stdout' | 'stderr'>): string {
  return `${stdout}\n${stderr}`;
}

function dropEmptyLists(resource: StateResource, member: string): void {
  const full = Object.entries(resource[member] ?? {}).filter(([, list]) => !Array.isArray(list) || list.length > 0);
  if (full.length > 0) resource[member] = Object.fromEntries(full);
  else delete resource[member];
}
