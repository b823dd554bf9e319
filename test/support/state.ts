import { gzipSync } from 'node:zlib';
import type { TestApp, TestResponse } from './test-app.ts';

/** With a member's token. */
export interface TestStack {
  readonly auth: string;
  readonly path: string;
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
}

let stackNumber = 0;

/** Creates a stack in a new organization; `auth` is its admin's. */
export async function createStack(app: TestApp): Promise<TestStack> {
  const organization = `org${process.pid}-${++stackNumber}`;
  const auth = `token ${await app.createUser(organization, 'admin')}`;
  await ok(app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: 'dev' } }));
  return { auth, organization, project: 'proj', stack: 'dev', path: `/api/stacks/${organization}/proj/dev` };
}

export interface RunningUpdate {
  readonly id: string;
  /** Path of the update. */
  readonly path: string;
  /** Authorization header of its lease. */
  readonly lease: string;
  readonly version: number;
}

/** Journaling only when requested. */
export async function startUpdate(
  app: TestApp,
  stack: TestStack,
  options: { kind?: string; journal?: boolean; dryRun?: boolean } = {},
): Promise<RunningUpdate> {
  const created = await ok(
    app.call('POST', `${stack.path}/${options.kind ?? 'update'}`, {
      auth: stack.auth,
      body: options.dryRun ? { options: { dryRun: true } } : {},
    }),
  );
  const id = created.json.updateID as string;
  const path = `${stack.path}/update/${id}`;
  const started = await ok(
    app.call('POST', path, { auth: stack.auth, body: options.journal ? { journalVersion: 1 } : {} }),
  );
  return { id, path, lease: `update-token ${started.json.token}`, version: started.json.version as number };
}

/** `count` resources under a root stack. */
export function deployment(count: number, note = ''): { version: number; deployment: Record<string, unknown> } {
  const resources = Array.from({ length: count }, (_, index) => ({
    urn: `urn:pulumi:dev::proj::pulumi:index:Stash::r${index}`,
    custom: true,
    type: 'pulumi:index:Stash',
    inputs: { input: `${note}${index}` },
    outputs: { output: `${note}${index}` },
  }));
  return { version: 3, deployment: { manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' }, resources } };
}

/** Sends the request; throws unless the response is 2xx. */
export async function ok(response: Promise<TestResponse>): Promise<TestResponse> {
  const answer = await response;
  if (answer.status < 200 || answer.status > 299) throw new Error(`${answer.status}: ${answer.text}`);
  return answer;
}

/** Body and headers of a gzip request. */
export function gzipped(body: object | string | Buffer): { body: Buffer; headers: Record<string, string> } {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { body: gzipSync(text), headers: { 'content-encoding': 'gzip' } };
}
