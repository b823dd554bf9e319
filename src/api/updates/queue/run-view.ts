import type { RunView } from '../../../shared/updates/update-queue-repository.ts';

const maxChars = 300;

/** The CI run that the environment names, for display (pkg/backend/updates.go of the CLI). */
export function runView(kind: string, environment: object): RunView {
  const text = environmentTexts(environment);
  return { kind, commit: text('git.head'), branch: text('git.headName'), url: text('ci.build.url') };
}

/** Null for missing or invalid texts. */
export function environmentTexts(environment: object): (name: string) => string | null {
  const values = environment as Readonly<Record<string, unknown>>;
  return (name) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    return typeof value === 'string' && /^[^\p{Cc}]+$/u.test(value) && value.isWellFormed()
      ? value.slice(0, maxChars).toWellFormed()
      : null;
  };
}
