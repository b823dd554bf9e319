import type { PageBrowser } from './browser.ts';
import type { TestApp, TestResponse } from './test-app.ts';

/** What a call of a procedure has led to. */
export interface ProcedureResult {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into results of every shape.
  readonly data: any;
  /** Null on success. */
  readonly error: { readonly message: string; readonly code: string; readonly kind: string } | null;
}

/** Reads the response to one call. */
export function resultOf(response: TestResponse): ProcedureResult {
  const { error, result } = response.json;
  return {
    status: response.status,
    data: result?.data,
    error: error ? { message: error.message, code: error.data.code, kind: error.data.kind } : null,
  };
}

/** The path of a query. */
export function queryPath(procedure: string, input: unknown = {}): string {
  return `/trpc/${procedure}?input=${encodeURIComponent(JSON.stringify(input))}`;
}

/** Calls a query with a token. */
export async function ask(
  app: TestApp,
  token: string,
  procedure: string,
  input: unknown = {},
): Promise<ProcedureResult> {
  return resultOf(await app.call('GET', queryPath(procedure, input), { auth: `token ${token}`, accept: null }));
}

/** Calls a mutation with a token. */
export async function command(
  app: TestApp,
  token: string,
  procedure: string,
  input: unknown,
): Promise<ProcedureResult> {
  const body = input as object;
  return resultOf(await app.call('POST', `/trpc/${procedure}`, { auth: `token ${token}`, accept: null, body }));
}

/** Calls a query with the cookie of a browser. */
export async function askFrom(browser: PageBrowser, procedure: string, input: unknown = {}): Promise<ProcedureResult> {
  return resultOf(await browser.get(queryPath(procedure, input), { accept: '*/*', 'sec-fetch-site': 'same-origin' }));
}
