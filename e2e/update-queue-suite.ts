import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

import { callApiOk } from '../testkit/api-call.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { expectFailure, outputOf, Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { scenarioTimeoutMs } from '../testkit/suite.ts';
import type { PulumiVersion } from '../testkit/toolchain/recipes.ts';
import { until } from '../testkit/until.ts';

const up = ['up', '--skip-preview', ...unattended];

/** The sum of a metric of the server, over the lines that match. */
export async function readMetric({ managementUrl }: OwnHoldfastServer, pattern: RegExp): Promise<number> {
  const text = await (await fetch(`${managementUrl}/metrics`)).text();
  return text.split('\n').reduce((sum, line) => sum + (pattern.test(line) ? Number(line.split(' ').at(-1)) : 0), 0);
}

/** Calls that wait. */
export function readWaiting(holdfast: OwnHoldfastServer): Promise<number> {
  return readMetric(holdfast, /^holdfast_update_queue_calls /);
}

/** Defines a test of what the server asks of any CLI that waits. `server` lets updates wait for long. */
export function testSuperseding(server: () => Promise<OwnHoldfastServer>, cli: PulumiVersion): void {
  test(
    `a run of CLI ${cli} that waits is superseded by the next commit of its branch`,
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast, { cli });
      const { workspace, project } = scenario;
      const git = async (...args: string[]): Promise<string> => {
        const own = ['-c', 'user.name=e2e', '-c', 'user.email=e2e@example.com', ...args];
        return (await promisify(execFile)('git', own, { cwd: workspace.programDir })).stdout.trim();
      };
      const commit = async (value: string): Promise<string> => {
        await workspace.writeProgram(thingProgram({ project, things: { a: { value } } }));
        await git('add', '.');
        await git('commit', '-q', '-m', value);
        return git('rev-parse', 'HEAD');
      };
      await git('init', '-q', '-b', 'main');
      await git('remote', 'add', 'origin', 'https://github.com/example/shop.git');
      await workspace.runOk(['stack', 'tag', 'set', 'supersede', 'branch']);
      await commit('1');
      await workspace.cloud.control({ slowMs: { 'a.create': 600_000 } });
      // It holds the stack for as long as the others need.
      const first = await workspace.spawn(up);
      await workspace.cloud.waitStarted('a', 'create', 120_000);
      await commit('2');
      const older = await workspace.spawn(up);
      await until(async () => (await readWaiting(holdfast)) === 1, 'the older one waits');
      const newest = await commit('3');
      const newer = await workspace.spawn(up);
      const superseded = await older.done;
      expect(superseded.exitCode).not.toBe(0);
      expect(outputOf(superseded)).toContain(`[409] Superseded by commit ${newest}`);
      await workspace.cloud.control({});
      expect(await first.done).toMatchObject({ exitCode: 0 });
      const last = await newer.done;
      expect({ exitCode: last.exitCode, said: /Waited \d+ (s|min)/.test(outputOf(last)) }).toEqual({
        exitCode: 0,
        said: true,
      });
      const { deployment } = await workspace.exportState();
      expect(JSON.stringify(deployment.resources)).toContain('"value":"3"');
    },
    scenarioTimeoutMs,
  );
}

/** Defines a test of the rules that hold for a CLI which sends no journal. */
export function testRulesWithoutJournal(server: () => Promise<OwnHoldfastServer>, cli: PulumiVersion): void {
  test(
    `CLI ${cli} reports freezes and missing previews, and of limits that need a journal`,
    async () => {
      const holdfast = await server();
      await using scenario = await Scenario.create(holdfast, { cli });
      const { workspace, project } = scenario;
      const rules = `orgs/${holdfast.organization}/update-rules`;
      /** Sets a rule for the time of the work. */
      const under = async (kind: string, settings: object, work: () => Promise<unknown>): Promise<void> => {
        const rule = { kind, project, stack: 'dev', settings };
        const { id } = await callApiOk(holdfast, 'POST', rules, rule);
        await work();
        await callApiOk(holdfast, 'DELETE', `${rules}/${id}`);
      };
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: '1' } } }));
      const preview = ['preview', '--non-interactive'];
      await under('freeze', {}, () => expectFailure(workspace, up, '[409] Frozen: updates of stack'));
      await under('require-preview', { mode: 'refuse' }, async () => {
        await expectFailure(workspace, up, /\[403\] Updates of stack .* need a preview/);
        await workspace.runOk(preview);
      });
      await under('change-limit', { changes: 0, withoutJournal: 'refuse' }, () =>
        expectFailure(workspace, up, /\[403\] The rules of .* need an update that sends a journal/),
      );
      await workspace.runOk(up);
    },
    scenarioTimeoutMs,
  );
}
