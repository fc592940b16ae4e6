// What the kernel answers in the walks of the widget bundle, which has none behind it.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const answers = fileURLToPath(new URL('../tests/answers/', import.meta.url));

// A candidate's machine code as the kernel answers, cut short.
const CODE = {
  candidate_id: 'c5',
  workload: 'main',
  ptx: [
    { text: '.visible .entry kernel_softmax(', line: 0, stall: null },
    { text: '    .param .u64 kernel_softmax_param_0)', line: 0, stall: null },
    { text: '{', line: 0, stall: null },
    { text: '    ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1]; // begin inline asm', line: 13, stall: null },
    { text: '    @%p1 bra $L__BB0_2;', line: 21, stall: null },
    { text: '    shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;', line: 21, stall: null },
    { text: '$L__BB0_2:', line: 0, stall: null },
    { text: '    mul.f32 %f2, %f1, 0f3FB8AA3B;', line: 21, stall: null },
    { text: '    st.global.b32 [%rd2], %r9;', line: 27, stall: null }
  ],
  sass: [
    { text: 'kernel_softmax:', line: 0, stall: null },
    { text: '0000  LDC R1, c[0x0][0x28] ;', line: 0, stall: 1 },
    { text: '0010  LDG.E.128 R4, desc[UR4][R2.64] ;', line: 13, stall: 4 },
    { text: '0020  SHFL.BFLY PT, R7, R6, 0x10, 0x1f ;', line: 21, stall: 5 },
    { text: '.L_x_1:', line: 0, stall: null },
    { text: '0030  @!P0 BRA `(.L_x_1) ;', line: 21, stall: 0 },
    { text: '0040  FMUL R2, R1, 1.4426950216293334961 ;', line: 21, stall: 4 },
    { text: '0050  STG.E desc[UR4][R2.64], R9 ;', line: 27, stall: 1 }
  ],
  sass_note: ''
};

// The kernel's answer to a menu of export formats, one of which was chosen.
const EXPORT = {
  formats: [
    { name: 'kernel', suffix: '.py', help: 'the kernel', needs: 'nvidia-cutlass-dsl' },
    {
      name: 'flashinfer-bench',
      suffix: '.json',
      help: 'the kernel as a solution of flashinfer-bench',
      needs: ''
    },
    { name: 'view', suffix: '.cutegen-run.json', help: 'the run, for JupyterLab', needs: 'JupyterLab' }
  ],
  paths: ['softmax-1a2b-c5.json']
};

const answerOf = name => JSON.parse(readFileSync(`${answers}${name}.json`, 'utf8'));
const plotly = execFileSync(
  process.env.PYTHON ?? fileURLToPath(new URL('../../.venv/bin/python', import.meta.url)),
  ['-c', 'from plotly.offline import get_plotlyjs; print(get_plotlyjs())'],
  { encoding: 'utf8', maxBuffer: 1 << 26 }
);
/** What the kernel answers to each query; of several, the one that the query's text names. */
export const ANSWERS = {
  machine_code: CODE,
  plots: answerOf('plots'),
  plot: answerOf('plot'),
  plotly,
  layouts: answerOf('layouts'),
  layout: answerOf('layout_pictures'),
  export: EXPORT
};
