import { isLogin } from '../../shared/stacks/names.ts';
import { decodeContinuation, encodeContinuation } from '../platform/http/continuation.ts';

const pageSize = 500;

/** Throws InvalidRequestError. */
export function afterOf(continuationToken: string | undefined): string {
  return decodeContinuation(continuationToken ?? '', (after) => (after === '' || isLogin(after) ? after : null));
}

/** In the order of names. */
export async function pageOf<Of>(
  list: (limit: number) => Promise<readonly Of[]>,
  nameOf: (row: Of) => string,
): Promise<{ readonly rows: readonly Of[]; readonly continuationToken?: string }> {
  const rows = await list(pageSize + 1);
  const shown = rows.slice(0, pageSize);
  const last = shown.at(-1);
  if (rows.length === shown.length || last === undefined) return { rows: shown };
  return { rows: shown, continuationToken: encodeContinuation(nameOf(last)) };
}
