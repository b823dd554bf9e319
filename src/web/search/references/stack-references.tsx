import { useQuery } from '@tanstack/react-query';
import { PartProblem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { ReferenceNode, StackRef } from '../../platform/app/procedure-types.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { FactList, FactRow } from '../../platform/ui/fact-list.tsx';
import { stackReferencesTexts } from '../texts.tsx';
import styles from './references.module.css';
import { StackName } from './stack-name.tsx';

/** Renders nothing if there are none, but a note if they are unknown. */
export function StackReferences({ stack }: { readonly stack: StackRef }) {
  const { organization, project, stack: name } = stack;
  const query = useQuery(trpc.references.ofStack.queryOptions({ organization, project, stack: name }));
  const problem = useProblem(query);
  const { data } = query;
  if (!problem && (data === undefined || data.reads.length + data.readBy.length === 0)) return null;
  return (
    <section className={styles['section']}>
      <h2>{stackReferencesTexts.title}</h2>
      {problem || data === undefined ? (
        problem && <PartProblem {...problem} />
      ) : (
        <>
          <FactList>
            <Names title={stackReferencesTexts.reads} nodes={data.reads} within={organization} />
            <Names title={stackReferencesTexts.readBy} nodes={data.readBy} within={organization} />
          </FactList>
          {data.isCut ? <p className={styles['note']}>{stackReferencesTexts.andMore}</p> : null}
        </>
      )}
    </section>
  );
}

function Names({
  nodes,
  title,
  within,
}: {
  readonly title: string;
  readonly nodes: readonly ReferenceNode[];
  readonly within: string;
}) {
  if (nodes.length === 0) return null;
  return (
    <FactRow name={title}>
      <ul className={styles['names']}>
        {nodes.map((node) => (
          <li key={`${node.organization}/${node.project}/${node.stack}`}>
            <StackName node={node} within={within} />
          </li>
        ))}
      </ul>
    </FactRow>
  );
}
