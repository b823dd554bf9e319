import { useContext } from 'react';
import { SubmitBlock } from './submit-block.ts';

/** Says why nothing can be sent at the moment, in a part of a page that has `data-draft` while it contains unsaved input. */
export function HaltNote({ className }: { readonly className: string | undefined }) {
  const halt = useContext(SubmitBlock);
  return halt === null ? null : (
    <p className={className} role="alert">
      {halt}
    </p>
  );
}
