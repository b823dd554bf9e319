import { useState } from 'react';
import type { StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { shellQuoted } from '../platform/app/shell-quoted.ts';
import { Code, CopyButton } from '../platform/ui/code.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { JsonView } from '../platform/ui/json-view.tsx';
import { safeLink } from '../platform/ui/safe-link.ts';
import { Secret } from '../secrets/secret.tsx';
import styles from './output-table.module.css';
import { outputTexts } from './stack/texts.tsx';

/** Longer values are shown after a click. */
const shortCharacters = 400;

interface OutputTableProps {
  readonly stack: StackRef;
  readonly outputs: StackDetails['outputs'];
  readonly hasVersion: boolean;
}

/** Secret outputs are redacted, and the command that shows them is copied instead. */
export function OutputTable({ hasVersion, outputs, stack }: OutputTableProps) {
  if (outputs === null) return <p className={styles['empty']}>{outputTexts.notReadable}</p>;
  if (outputs.length === 0) {
    return (
      <div className={styles['empty']}>
        <p>{hasVersion ? outputTexts.noOutputs : outputTexts.notUpdated}</p>
        {hasVersion ? null : <Code>{`pulumi up --stack ${stack.organization}/${stack.project}/${stack.stack}`}</Code>}
      </div>
    );
  }
  return (
    <table className={styles['table']} aria-label={outputTexts.table}>
      <tbody>
        {outputs.map((output) => (
          <Output key={output.name} output={output} stack={stack} />
        ))}
      </tbody>
    </table>
  );
}

function Output({
  output,
  stack,
}: {
  readonly output: NonNullable<StackDetails['outputs']>[number];
  readonly stack: StackRef;
}) {
  const { isCut, isSecret, name, value } = output;
  const isRedacted = isSecret || value === null;
  const command = `pulumi stack output ${shellQuoted(name)} --show-secrets --stack ${shellQuoted(`${stack.organization}/${stack.project}/${stack.stack}`)}`;
  return (
    <tr>
      <th scope="row" className={styles['name']}>
        {name}
      </th>
      <td className={styles['value']}>
        {isRedacted ? (
          <Secret stack={stack} name={name} location={{ of: 'output', name }} />
        ) : (
          <Value name={name} text={value} isCut={isCut} />
        )}
      </td>
      <td className={styles['copy']}>
        {isRedacted ? (
          <CopyButton text={command} label={outputTexts.copyCommand(name)} />
        ) : (
          <CopyButton text={value} label={outputTexts.copy(name)} />
        )}
      </td>
    </tr>
  );
}

/** Returns null for values other than objects and lists, and for values that JavaScript would change, such as large numbers. */
function readTree(text: string): object | null {
  if (!/^[[{]/.test(text)) return null;
  try {
    const tree = JSON.parse(text) as object;
    return JSON.stringify(tree) === text ? tree : null;
  } catch {
    return null;
  }
}

function Value({ isCut, name, text }: { readonly name: string; readonly text: string; readonly isCut: boolean }) {
  const [isWhole, setIsWhole] = useState(false);
  const link = text.length <= 200 && /^https?:\/\//.test(text) ? safeLink(text) : null;
  if (link !== null) return <ExternalLink href={link}>{text}</ExternalLink>;
  const tree = text.length <= shortCharacters || isCut ? null : readTree(text);
  if (isWhole && tree !== null) return <JsonView label={name} value={tree} />;
  if (text.length <= shortCharacters || isWhole) {
    return (
      <>
        <span className={styles['text']}>{text}</span>
        {isCut ? <span className={styles['cut']}>{outputTexts.andMore}</span> : null}
      </>
    );
  }
  return (
    <>
      <span className={styles['text']}>{text.slice(0, shortCharacters)}…</span>{' '}
      <button type="button" className={styles['more']} onClick={() => setIsWhole(true)}>
        {tree === null ? outputTexts.allCharacters(text.length) : outputTexts.showAll}
      </button>
    </>
  );
}
