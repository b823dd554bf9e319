import type { Choices, DemoResource } from '../resources.ts';

/** The input of a program. */
export interface DemoStack {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
  /** The scale of all resources: 1 for development, more for production. */
  readonly scale: number;
  readonly region: string;
}

/** The edition of a program: later editions have newer images, other sizes, and more or fewer resources. */
export interface Edition {
  readonly number: number;
  readonly choices: Choices;
}

export interface DemoProgram {
  readonly project: string;
  readonly description: string;
  readonly runtime: 'nodejs' | 'python' | 'go' | 'yaml';
  readonly team: string;
  readonly build: (stack: DemoStack, edition: Edition) => DemoResource[];
  /** Outputs of the stack. A value that begins with `secret:` is encrypted. */
  readonly outputs: (stack: DemoStack, edition: Edition) => Record<string, unknown>;
}

/** Its databases are protected. */
export const isProduction = ({ stack }: DemoStack): boolean => stack.startsWith('prod');

/** Tags that programs give to their resources. */
export const tagsOf = (stack: DemoStack, team: string) => ({
  environment: stack.stack,
  owner: team,
  'managed-by': 'pulumi',
});

/** The number of the account in the cloud. */
export const account = '481516234215';
