import type { Dialect } from '../platform/http/request.ts';

/** The token of an empty event page. Null ends the CLI's loop; the contract's tokens are always strings. */
export function lastPageToken(dialect: Dialect, page: { isActive: boolean; after: number }): string | null {
  return dialect === 'contract' || page.isActive ? String(page.after) : null;
}
