import { randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';

import type { HoldfastServer } from './holdfast-server.ts';
import { PulumiWorkspace, type WorkspaceOptions } from './pulumi-cli.ts';
import type { CliResult } from './pulumi-process.ts';
import { type Json, normaliseState, type StateResource } from './pulumi-state.ts';

/** A project name that no earlier run has used: the server may be one that lives on. */
export function newProject(label: string): string {
  return `${label}-${randomBytes(4).toString('hex')}`;
}

/** Skips the preview and asks nothing. */
export const unattended = ['--yes', '--skip-preview', '--non-interactive'] as const;

/** Steps one after another, so that a failure always comes at the same point. */
export const inOrder = [...unattended, '--parallel', '1'] as const;

/** A project with its stack `dev` made and selected. */
export class Scenario implements AsyncDisposable {
  readonly workspace: PulumiWorkspace;
  readonly project: string;
  /** States kept by `keep`, in order. */
  readonly kept: { label: string; state: Json }[] = [];
  readonly #prefix: string;

  private constructor(workspace: PulumiWorkspace, project: string, prefix: string) {
    this.workspace = workspace;
    this.project = project;
    this.#prefix = prefix;
  }

  /** On the server, or on the CLI's own file backend when there is none. */
  static async create(server: HoldfastServer | null, options: ScenarioOptions = {}): Promise<Scenario> {
    const { project = newProject('e2e'), ...workspaceOptions } = options;
    const workspace = await (server?.workspace(workspaceOptions) ?? PulumiWorkspace.create(workspaceOptions));
    const scenario = new Scenario(workspace, project, server === null ? '' : `${server.organization}/${project}/`);
    await workspace.writeProgram({ name: project, runtime: 'yaml', resources: {} });
    await workspace.runOk(['stack', 'init', scenario.stackName('dev'), '--non-interactive']);
    return scenario;
  }

  /** A stack of this project in the words of the backend. */
  stackName(name: string): string {
    return `${this.#prefix}${name}`;
  }

  /** The URN of a Thing in the stack `dev`. */
  thing(name: string, stack = 'dev'): string {
    return `urn:pulumi:${stack}::${this.project}::holdfast:index:Thing::${name}`;
  }

  /** Keeps the state of the selected stack for a later comparison. */
  async keep(label: string, options: { keepOrder?: boolean } = {}): Promise<void> {
    const state = await this.workspace.exportState({ showSecrets: true });
    // Journals lose empty lists in a refresh, the file backend's snapshots keep them; both mean the same.
    for (const resource of state.deployment.resources ?? []) dropEmptyLists(resource, 'propertyDependencies');
    this.kept.push({ label, state: normaliseState(state, options) });
  }

  /** As `keep`, with the order of the resources: for programs that are one chain, where nothing else fixes it. */
  async keepInOrder(label: string): Promise<void> {
    await this.keep(label, { keepOrder: true });
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.workspace.dispose();
  }
}

/** How a scenario is varied. */
export type ScenarioOptions = Pick<WorkspaceOptions, 'cli' | 'env'> & { project?: string };

/**
 * Runs the same steps on the server and on the CLI's own file backend, and expects the same states from both wherever the
 * steps keep one, and at their end. Unless the steps leave work to do, neither a preview nor a refresh of the server's
 * stack may find anything then.
 */
export async function expectSameAsFileBackend(
  server: HoldfastServer,
  steps: (scenario: Scenario) => Promise<void>,
  options: ScenarioOptions & { leavesWork?: boolean } = {},
): Promise<void> {
  const { leavesWork = false, ...rest } = options;
  const project = options.project ?? newProject('twin');
  await using ours = await Scenario.create(server, { ...rest, project });
  await using theirs = await Scenario.create(null, { ...rest, project });
  const run = async (scenario: Scenario): Promise<void> => {
    await steps(scenario);
    await scenario.keep('at the end');
  };
  await Promise.all([run(ours), run(theirs)]);
  expect(ours.kept.map(({ label }) => label)).toEqual(theirs.kept.map(({ label }) => label));
  for (const [at, { label, state }] of ours.kept.entries()) {
    expect({ [label]: state }).toEqual({ [label]: theirs.kept[at]?.state });
  }
  if (!leavesWork) await expectNothingToDo(ours.workspace);
}

/** Expects that neither the program nor the cloud differs from the state. */
export async function expectNothingToDo(workspace: PulumiWorkspace, stack?: string): Promise<void> {
  const selected = stack === undefined ? [] : ['--stack', stack];
  await workspace.runOk(['preview', '--expect-no-changes', '--non-interactive', ...selected]);
  await workspace.runOk(['refresh', '--preview-only', '--expect-no-changes', '--non-interactive', ...selected]);
}

/** Runs the CLI and expects that it fails with a text; returns its whole output. */
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

/** Everything that a run has printed. */
export function outputOf({ stdout, stderr }: Pick<CliResult, 'stdout' | 'stderr'>): string {
  return `${stdout}\n${stderr}`;
}

function dropEmptyLists(resource: StateResource, member: string): void {
  const full = Object.entries(resource[member] ?? {}).filter(([, list]) => !Array.isArray(list) || list.length > 0);
  if (full.length > 0) resource[member] = Object.fromEntries(full);
  else delete resource[member];
}
