import { randomUUID } from 'node:crypto';
import type { Caller } from './calls.ts';
import type { Tenant } from './target.ts';

export interface Update {
  readonly path: string;
  /** Authorization header of its lease. */
  readonly lease: string;
}

/** Creates a stack and returns its path. */
export async function createStack(caller: Caller, { organization, auth }: Tenant): Promise<string> {
  const path = `/api/stacks/${organization}/proj`;
  const name = `s${randomUUID().slice(0, 8)}`;
  await caller.json({ method: 'POST', path, auth, body: { stackName: name } });
  return `${path}/${name}`;
}

/** Creates an update with this request and starts it. */
export async function startUpdate(caller: Caller, { auth }: Tenant, stack: string, request = {}): Promise<Update> {
  const created = await caller.json<{ updateID: string }>({
    method: 'POST',
    path: `${stack}/update`,
    auth,
    body: request,
  });
  const path = `${stack}/update/${created.updateID}`;
  const { token } = await caller.json<{ token: string }>({ method: 'POST', path, auth, body: {} });
  return { path, lease: `update-token ${token}` };
}

export async function completeUpdate(caller: Caller, { path, lease }: Update): Promise<void> {
  await caller.json({ method: 'POST', path: `${path}/complete`, auth: lease, body: { status: 'succeeded' } });
}
