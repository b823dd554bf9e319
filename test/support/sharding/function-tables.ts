import type { CatalogFunction } from './catalog.ts';

/** Itself or through functions that it calls. */
export interface NamedTables {
  readonly written: readonly string[];
  readonly read: readonly string[];
}

/** By the text of each function: dynamic SQL of ours names no other tables. */
export function namedTables(
  functions: readonly CatalogFunction[],
  tables: readonly string[],
): Map<string, NamedTables> {
  const known = new Set(tables);
  const sources = new Map<string, string>();
  for (const { name, source } of functions)
    sources.set(name, `${sources.get(name) ?? ''}\n${source.replaceAll(/--.*/g, '').toLowerCase()}`);
  const found = (source: string, pattern: RegExp): string[] =>
    [...source.matchAll(pattern)].map(([, name]) => name as string).filter((name) => known.has(name));
  const result = new Map<string, NamedTables>();
  for (const start of sources.keys()) {
    const reached = new Set([start]);
    // A set also visits what is added meanwhile.
    for (const name of reached)
      for (const [, called] of (sources.get(name) as string).matchAll(/\b(\w+)\s*\(/g))
        if (sources.has(called as string)) reached.add(called as string);
    const text = [...reached].map((name) => sources.get(name)).join('\n');
    const written = new Set(found(text, /\b(?:insert\s+into|update|delete\s+from)\s+(?:only\s+)?(\w+)/g));
    const named = new Set([...written, ...found(text, /\b(?:from|join|using|table|,)\s+(?:only\s+)?(\w+)/g)]);
    result.set(start, {
      written: [...written].sort(),
      read: [...named].filter((name) => !written.has(name)).sort(),
    });
  }
  return result;
}
