import type { TestApp } from './test-app.ts';

const methods = ['any', 'anyFirst', 'maybeOne', 'maybeOneFirst', 'one', 'oneFirst', 'query', 'transaction'] as const;

/** Names of statements, in order. */
export interface NotedStatements {
  readonly begun: string[];
  readonly answered: string[];
}

/** Records all statements that the app's pool gets from now on; a transaction counts as one. */
export function noteStatements({ context }: TestApp): NotedStatements {
  const noted: NotedStatements = { begun: [], answered: [] };
  const db = context.db as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const method of methods) {
    const original = db[method] as (...args: unknown[]) => unknown;
    db[method] = async (...args) => {
      const text = (args[0] as { sql?: string }).sql;
      const name = /\/\* (\S+) \*\//.exec(text ?? '')?.[1] ?? method;
      noted.begun.push(name);
      const answer = await original(...args);
      noted.answered.push(name);
      return answer;
    };
  }
  return noted;
}
