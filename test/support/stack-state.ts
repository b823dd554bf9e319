import { hashToken } from '../../src/shared/platform/crypto/secret-token.ts';
import { ok, type TestStack } from './state.ts';
import type { TestApp, TestResponse } from './test-app.ts';

/** Names of the resources in the stack's newest state, or in that of a version. */
export async function exportedNames(app: TestApp, stack: TestStack, version?: number): Promise<string[]> {
  const exported = await exportState(app, stack, version);
  return resourceNames(exported.json);
}

export function resourceNames(document: { deployment: { resources?: { urn: string }[] | null } }): string[] {
  return (document.deployment.resources ?? []).map(({ urn }) => urn.split('::').at(-1) as string);
}

export function exportState(app: TestApp, stack: TestStack, version?: number): Promise<TestResponse> {
  const suffix = version === undefined ? '' : `/${version}`;
  return ok(app.call('GET', `${stack.path}/export${suffix}`, { auth: stack.auth }));
}

export async function getStack(app: TestApp, stack: TestStack): Promise<TestResponse['json']> {
  return (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json;
}

/** The holder of the stack's token, as services get it. */
export async function callerOf(app: TestApp, { auth, organization, project, stack }: TestStack) {
  const hash = hashToken(auth.replace('token ', ''));
  const caller = await app.context.identity.findCaller(hash, { organization, project, stack });
  if (!caller) throw new Error('the token is not valid');
  return caller;
}
