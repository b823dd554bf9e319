import { shellQuoted } from '../platform/app/shell-quoted.ts';

/** The user's decision about an interrupted operation. */
export interface Choice {
  readonly action: 'keep' | 'clear' | 'import';
  readonly id: string;
}

/** No decision yet. */
export const undecided: Choice = { action: 'keep', id: '' };

interface Step {
  readonly operation: string;
  readonly urn: string;
  readonly type: string;
  readonly isImportable: boolean;
}

type Choices = Readonly<Record<number, Choice>>;

/** The repairs in the form that the server takes, without undecided ones. */
export function chosenRepairs(steps: readonly Step[], choices: Choices) {
  return steps.flatMap(({ urn }, index) => {
    const choice = choices[index];
    if (choice === undefined || choice.action === 'keep') return [];
    const repair =
      choice.action === 'clear' ? { action: 'clear' as const } : { action: 'import' as const, id: choice.id.trim() };
    return [{ index, urn, repair }];
  });
}

export function isComplete(steps: readonly Step[], choices: Choices): boolean {
  return chosenRepairs(steps, choices).every(({ repair }) => repair.action === 'clear' || repair.id !== '');
}

const maxNamed = 3;

/** A single command if there are no creations. */
export function settlingCommands(steps: readonly Step[], stack: string): string[] {
  const refresh = `pulumi refresh --stack ${shellQuoted(stack)}`;
  const creations = steps.filter(({ isImportable }) => isImportable);
  if (creations.length === 0) return [refresh];
  const imports = creations.slice(0, maxNamed).map(({ type, urn }) => {
    const name = urn.slice(urn.lastIndexOf('::') + 2);
    return `pulumi import ${shellQuoted(type)} ${shellQuoted(name)} '<id>' --stack ${shellQuoted(stack)}`;
  });
  return [`${refresh} --clear-pending-creates`, ...imports];
}
