import { Link } from '@tanstack/react-router';
import type { ReferenceNode } from '../../platform/app/procedure-types.ts';
import { stackNameTexts } from '../texts.tsx';
import styles from './references.module.css';

/** A link if the user may read the stack. `within` is an organization whose name is omitted. */
export function StackName({ node, within }: { readonly node: ReferenceNode; readonly within: string }) {
  const { isReadable, organization, project, stack } = node;
  const name = `${organization === within ? '' : `${organization}/`}${project}/${stack}`;
  if (!isReadable) {
    return (
      <span className={styles['hidden']} title={stackNameTexts.notReadable}>
        {name}
      </span>
    );
  }
  return (
    <Link to="/$organization/$project/$stack" params={{ organization, project, stack }} className={styles['name']}>
      {name}
    </Link>
  );
}
