import { useContext } from 'react';
import { SubmitBlock } from './submit-block.ts';

/** Says in a form beside other content why it cannot be sent for now. Such a form has `data-draft` while it holds what was typed. */
export function HaltNote({ className }: { readonly className: string | undefined }) {
  const halt = useContext(SubmitBlock);
  return halt === null ? null : (
    <p className={className} role="alert">
      {halt}
    </p>
  );
}
