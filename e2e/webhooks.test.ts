import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { Scenario, unattended } from '../testkit/scenario.ts';
import { thingProgram } from '../testkit/stash-program.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of several shapes.
  readonly body: any;
}

const received: Received[] = [];
/** A receiver of webhooks and a code host, as an operator allows it. */
const outside = http.createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString();
    received.push({ path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) });
    response.writeHead(201).end('taken');
  });
});
await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve));
afterAll(() => void outside.close());
beforeEach(() => void received.splice(0));

const url = (path = '') => `http://127.0.0.1:${(outside.address() as AddressInfo).port}${path}`;

await suite('notifications of webhooks', { ownServer: true }, () => {
  const server = fileServer(() =>
    startOwnHoldfast({ HOLDFAST_OUTGOING_ALLOW: url(), ...tuned({ sweepSeconds: 1 }) }, { prepared: true }),
  );

  test(
    'webhooks that the CLI sets up are notified of updates, and of drift that its refreshes find',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const json = async (...args: string[]) =>
        JSON.parse((await workspace.runOk([...args, '--output', 'json'])).stdout);
      const hook = ['stack', 'webhook'];
      const secret = 'not to be shown';
      const made = await json(
        ...[...hook, 'new', '--name', 'alerts', '--url', url('/hook'), '--secret', secret],
        ...['--group', 'stacks', '--event', 'drift_detected', '--yes'],
      );
      expect(made).toMatchObject({
        name: 'alerts',
        hasSecret: true,
        eventGroups: ['stacks'],
        events: ['drift_detected'],
      });
      await workspace.runOk([...hook, 'ping', made.id]);
      expect(received[0]?.body).toMatchObject({ type: 'ping', projectName: project });

      const things = { a: { value: 'one' }, b: { value: 'two' }, c: { value: 'three' } };
      await workspace.writeProgram(thingProgram({ project, things }));
      await workspace.runOk(['up', '--yes', '--non-interactive']);
      await until(() => received.length >= 3, 'preview and update are notified');
      expect(
        received
          .slice(1)
          .map(({ body }) => [body.type, body.result, body.resourceChanges.create])
          .sort(),
      ).toEqual([
        ['preview_succeeded', 'succeeded', 4],
        ['update_succeeded', 'succeeded', 4],
      ]);
      for (const { headers, text } of received)
        expect(headers['pulumi-webhook-signature']).toBe(createHmac('sha256', secret).update(text).digest('hex'));

      expect((await workspace.runOk(['stack', 'drift', 'status'])).stdout).toMatch(
        /Drift detected: +unknown .*never run/i,
      );
      await workspace.cloud.edit('a-1', { value: 'drifted' });
      await workspace.cloud.remove('b-1');
      await workspace.runOk(['refresh', '--preview-only', '--non-interactive']);
      const drift = () =>
        received.filter(({ body }) => body.type === 'drift_detected').map(({ body }) => body.details.changes);
      await until(() => drift().length === 1, 'drift is notified');
      expect(drift()).toEqual([{ delete: 1, update: 1 }]);
      expect((await workspace.runOk(['stack', 'drift', 'status'])).stdout).toMatch(/Drift detected: +yes/i);
      // Finds the same, repairs it, and is not news.
      await workspace.runOk(['up', '--refresh', ...unattended]);
      const runs = async () => (await json('stack', 'drift', 'list')).driftRuns;
      await until(
        async () => (await runs())[0].status === 'succeeded' && (await runs()).length === 2,
        'the update with --refresh is looked at',
        {
          timeoutMs: 120_000,
          everyMs: 500,
        },
      );
      expect(await runs()).toMatchObject([
        {
          driftDetected: true,
          detectUpdate: { resourceChanges: { delete: 1, update: 1 } },
          remediateUpdate: { status: 'succeeded' },
        },
        { driftDetected: true, detectUpdate: { resourceChanges: { delete: 1, update: 1 } } },
      ]);
      expect((await workspace.runOk(['stack', 'drift', 'status'])).stdout).toMatch(/Drift detected: +no/i);
      expect(drift()).toHaveLength(1);

      const { deliveries } = await json(...hook, 'delivery', 'list', made.id);
      const last = deliveries.find(({ kind }: { kind: string }) => kind === 'drift_detected');
      expect(last).toMatchObject({ responseCode: 201, responseBody: 'taken' });
      const before = received.length;
      await workspace.runOk([...hook, 'delivery', 'redeliver', made.id, last.id]);
      expect(received[before]?.text).toBe(last.payload);
      await workspace.runOk([
        ...hook,
        'edit',
        made.id,
        '--remove-group',
        'stacks',
        '--remove-event',
        'drift_detected',
        '--active=false',
      ]);
      expect(await json(...hook, 'get', made.id)).toMatchObject({ active: false, eventGroups: [], events: [] });
      expect((await workspace.runOk([...hook, 'list'])).stdout).toContain(made.id);
      await workspace.runOk([...hook, 'remove', made.id, '--yes']);
      expect((await workspace.run([...hook, 'get', made.id])).exitCode).not.toBe(0);
    },
    scenarioTimeoutMs,
  );

  test(
    'a webhook of the organization sets the status of the commit that an update was run for',
    async () => {
      await using scenario = await Scenario.create(await server());
      const { workspace, project } = scenario;
      const hook = ['org', 'webhook'];
      const made = JSON.parse(
        (
          await workspace.runOk([
            ...[...hook, 'new', '--name', 'github', '--hook-format', 'github_status', '--url', url('/api/v3')],
            ...['--secret', 'token-of-github', '--yes', '--output', 'json'],
          ])
        ).stdout,
      );
      const git = async (...args: string[]) =>
        (
          await promisify(execFile)('git', ['-c', 'user.name=ada', '-c', 'user.email=ada@example.com', ...args], {
            cwd: workspace.programDir,
          })
        ).stdout;
      await workspace.writeProgram(thingProgram({ project, things: { a: { value: 'one' } } }));
      await git('init', '--quiet');
      await git('remote', 'add', 'origin', url('/acme/web.git'));
      await git('add', '.');
      await git('commit', '--quiet', '--message', 'first');
      const commit = (await git('rev-parse', 'HEAD')).trim();
      await workspace.runOk(['up', ...unattended]);
      await until(() => received.some(({ body }) => body.state === 'success'), 'the end is notified');
      // The start as well, unless the update was faster.
      expect(received.at(-1)).toMatchObject({
        path: `/api/v3/repos/acme/web/statuses/${commit}`,
        headers: { authorization: 'Bearer token-of-github' },
        body: { state: 'success', context: `pulumi/${project}/dev`, description: 'update succeeded (2 create)' },
      });
      expect((await workspace.runOk([...hook, 'list'])).stdout).toContain(made.id);
      expect((await workspace.runOk([...hook, 'delivery', 'list', made.id])).stdout).toContain('update_succeeded');
      await workspace.runOk([...hook, 'edit', made.id, '--active=false']);
      await workspace.runOk([...hook, 'remove', made.id, '--yes']);
    },
    scenarioTimeoutMs,
  );
});
