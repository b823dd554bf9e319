/** The maximum permissions of a token. */
export interface Scope {
  readonly stacks: string;
  readonly permissions: readonly string[];
}

export const newScope: Scope = { stacks: '*/*', permissions: ['read'] };

/** Whether a token with these scopes may do anything. */
export function areWhole(scopes: readonly Scope[]): boolean {
  return scopes.length > 0 && scopes.every(({ permissions, stacks }) => stacks.trim() !== '' && permissions.length > 0);
}

/** Scopes may be equal, so their position counts. */
export function withoutScope(scopes: readonly Scope[], at: number): readonly Scope[] {
  return scopes.filter((_, index) => index !== at);
}
