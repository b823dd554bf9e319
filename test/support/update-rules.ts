import { ok, type TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';

/** Sets a rule in the organization of the stack, and returns its id. */
export async function setRule(app: TestApp, stack: TestStack, rule: object): Promise<string> {
  const { json } = await ok(app.call('POST', rulesPath(stack), { auth: stack.auth, body: rule }));
  return json.id as string;
}

export async function removeRule(app: TestApp, stack: TestStack, id: string): Promise<void> {
  await ok(app.call('DELETE', `${rulesPath(stack)}/${id}`, { auth: stack.auth }));
}

export function rulesPath({ organization }: TestStack): string {
  return `/api/orgs/${organization}/update-rules`;
}
