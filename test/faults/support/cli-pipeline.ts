import { PulumiWorkspace } from '../../../e2e/support/pulumi-cli.ts';
import { stashProgram } from '../../../e2e/support/stash-program.ts';
import type { Target } from './pipelines.ts';

const project = 'faults-cli';
const count = 6;
const unattended = ['--yes', '--skip-preview', '--non-interactive'];

/** The real CLI, which brings its stack from one round to the next until it is told to stop. */
export class CliPipeline {
  readonly name: string;
  /** The last round whose `up` succeeded, and the last one that was begun. */
  succeeded = 0;
  begun = 0;
  readonly runs = { begun: 0, succeeded: 0 };
  readonly failures: string[] = [];
  readonly #workspace: PulumiWorkspace;
  readonly #organization: string;
  #stopping = false;
  #run: Promise<void> = Promise.resolve();

  private constructor(name: string, workspace: PulumiWorkspace, organization: string) {
    this.name = name;
    this.#workspace = workspace;
    this.#organization = organization;
  }

  static async start(target: Target, name: string, env: Record<string, string> = {}): Promise<CliPipeline> {
    const workspace = await PulumiWorkspace.create({ backendUrl: target.url, accessToken: target.token, env });
    const pipeline = new CliPipeline(name, workspace, target.organization);
    await pipeline.#writeRound(0);
    await workspace.runOk(['stack', 'init', `${pipeline.#organization}/${project}/${name}`, '--non-interactive']);
    pipeline.#run = pipeline.#loop();
    return pipeline;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#run;
  }

  /** Rounds that the stack's resources are from. */
  async rounds(): Promise<number[]> {
    const { deployment } = await this.#workspace.exportState();
    const stashes = (deployment.resources ?? []).filter(({ type }) => type === 'pulumi:index:Stash');
    return stashes.map((stash) => Number(/round (\d+)/.exec(JSON.stringify(stash['inputs']))?.[1]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#workspace.dispose();
  }

  async #loop(): Promise<void> {
    while (!this.#stopping) {
      const round = ++this.begun;
      this.runs.begun++;
      await this.#writeRound(round);
      const result = await this.#workspace.run(['up', ...unattended]);
      if (result.exitCode === 0) {
        this.succeeded = round;
        this.runs.succeeded++;
        continue;
      }
      this.failures.push(
        `${this.name}: up ended with ${result.exitCode}: ${result.stderr.slice(-1_000)}${result.stdout.slice(-1_000)}`,
      );
      // What a person does then; it fails when nothing runs any more.
      await this.#workspace.run(['cancel', '--yes']);
    }
  }

  #writeRound(round: number): Promise<void> {
    return this.#workspace.writeProgram(stashProgram({ project, count, inputOf: (at) => `round ${round} at ${at}` }));
  }
}
