import { stripColors } from './colored-text.ts';
import { errorSummaryTexts } from './texts.tsx';

/** A failed run in the form of an issue. */
export interface FailureReport {
  /** As in "Update 7 of acme/web/prod". */
  readonly title: string;
  readonly url: string;
  /** Lines such as "Commit: abc". */
  readonly facts: readonly string[];
  readonly errors: readonly { readonly urn: string | null; readonly message: string }[];
}

const maxErrors = 20;

/** No content of a message can end its code block. */
export function failureMarkdown({ errors, facts, title, url }: FailureReport): string {
  const shown = errors.slice(0, maxErrors).map(({ message, urn }) => {
    const text = stripColors(message).trim();
    const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
    const fence = '`'.repeat(longest + 1);
    return `${urn === null ? '' : `\`${urn.replaceAll('`', "'")}\`\n\n`}${fence}text\n${text}\n${fence}`;
  });
  const more = errors.length - shown.length;
  return [
    errorSummaryTexts.failed(title, url),
    ...(facts.length === 0 ? [] : [facts.map((fact) => `- ${fact}`).join('\n')]),
    ...shown,
    ...(more > 0 ? [errorSummaryTexts.moreErrors(more)] : []),
  ].join('\n\n');
}
