	.file	"<string>"
	.section	.rodata.cst16,"aM",@progbits,16
.LCPI0_0:
	.quad	0x3d719799812dea11
	.quad	0x3379b604aaaca626
	.section	.rodata.cst4,"aM",@progbits,4
.LCPI0_1:
	.long	0x0da24260
.LCPI0_6:
	.long	3234528013
.LCPI0_7:
	.long	4286578688
.LCPI0_8:
	.long	0xbf800000
.LCPI0_9:
	.long	0x3d9021bb
.LCPI0_10:
	.long	0xbdebd1b8
.LCPI0_11:
	.long	0x3def251a
.LCPI0_12:
	.long	0xbdfe5d4f
.LCPI0_13:
	.long	0x3e11e9bf
.LCPI0_14:
	.long	0xbe2aae50
.LCPI0_15:
	.long	0x3e4cceac
.LCPI0_16:
	.long	0xbe7ffffc
.LCPI0_17:
	.long	0x3eaaaaaa
.LCPI0_18:
	.long	0xb95e8083
.LCPI0_19:
	.long	0xbf000000
.LCPI0_20:
	.long	0x3f318000
.LCPI0_21:
	.long	0xc3acb1a2
	.section	.rodata.cst8,"aM",@progbits,8
.LCPI0_2:
	.quad	0x3ff0000000000000
	.section	.rodata,"a",@progbits
.LCPI0_3:
	.quad	0
	.quad	1
	.quad	2
	.quad	3
	.quad	4
	.quad	5
	.quad	6
	.quad	7
.LCPI0_4:
	.quad	8
	.quad	9
	.quad	10
	.quad	11
	.quad	12
	.quad	13
	.quad	14
	.quad	15
	.section	.rodata.cst32,"aM",@progbits,32
.LCPI0_5:
	.long	0
	.long	4
	.long	2
	.long	6
	.long	1
	.long	5
	.long	3
	.long	7
	.section	.ltext,"axl",@progbits
	.globl	_ZN8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE
	.type	_ZN8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE,@function
_ZN8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$328, %rsp
	movq	792(%rsp), %r11
	movq	800(%rsp), %r13
	movq	%rdi, -80(%rsp)
	subq	%r11, %r13
	testq	%r13, %r13
	jle	.LBB0_26
	xorl	%eax, %eax
	cmpq	$8, 672(%rsp)
	movabsq	$.LCPI0_0, %rcx
	movq	624(%rsp), %r9
	vxorps	%xmm4, %xmm4, %xmm4
	movabsq	$.LCPI0_8, %rbx
	movq	608(%rsp), %rdx
	movq	840(%rsp), %rsi
	movq	704(%rsp), %rdi
	movq	752(%rsp), %r8
	movq	680(%rsp), %r10
	movq	440(%rsp), %rbp
	vxorps	%xmm23, %xmm23, %xmm23
	vbroadcastss	(%rbx), %ymm13
	movabsq	$.LCPI0_9, %rbx
	vbroadcastss	(%rbx), %ymm3
	movabsq	$.LCPI0_11, %rbx
	vbroadcastss	(%rbx), %ymm8
	sete	%al
	leaq	(%rdi,%rsi), %rbx
	vbroadcastsd	(%rcx,%rax,8), %zmm0
	movabsq	$.LCPI0_1, %rcx
	kmovd	%eax, %k1
	movabsq	$.LCPI0_12, %rax
	movq	%rbx, -48(%rsp)
	vmovss	(%rcx), %xmm5
	movabsq	$.LCPI0_10, %rcx
	vbroadcastss	(%rax), %ymm10
	movabsq	$.LCPI0_13, %rax
	vbroadcastss	(%rcx), %ymm6
	movabsq	$.LCPI0_2, %rcx
	vbroadcastss	(%rax), %ymm12
	movabsq	$.LCPI0_3, %rax
	vmovsd	(%rcx), %xmm2
	vmovdqa64	(%rax), %zmm7
	movabsq	$.LCPI0_14, %rax
	movabsq	$9223372036854775776, %rcx
	vbroadcastss	(%rax), %ymm14
	movabsq	$.LCPI0_4, %rax
	vcvtsi2sd	%r9, %xmm15, %xmm9
	vmovss	%xmm4, %xmm5, %xmm5 {%k1}
	vcvtsd2ss	%xmm0, %xmm0, %xmm1
	vmovups	%zmm0, 128(%rsp)
	vbroadcastss	%xmm5, %ymm4
	vmovdqa64	(%rax), %zmm5
	movabsq	$.LCPI0_15, %rax
	vbroadcastss	(%rax), %ymm15
	movabsq	$.LCPI0_5, %rax
	vmovsd	%xmm2, -56(%rsp)
	vmovdqu64	%zmm7, 64(%rsp)
	vmovaps	(%rax), %ymm16
	movabsq	$.LCPI0_16, %rax
	vbroadcastss	%xmm1, %zmm1
	vdivsd	%xmm9, %xmm2, %xmm2
	vbroadcastss	(%rax), %ymm17
	movabsq	$.LCPI0_6, %rax
	vpbroadcastd	(%rax), %ymm18
	movabsq	$.LCPI0_17, %rax
	vmovups	%zmm1, 256(%rsp)
	vbroadcastss	(%rax), %ymm19
	movabsq	$.LCPI0_7, %rax
	vpbroadcastd	(%rax), %ymm20
	movabsq	$.LCPI0_18, %rax
	vbroadcastss	(%rax), %ymm21
	movabsq	$.LCPI0_19, %rax
	vbroadcastss	(%rax), %ymm11
	movq	%r9, %rax
	andq	%rcx, %rax
	orq	$28, %rcx
	vmovdqu64	%zmm5, 192(%rsp)
	movq	%rax, -104(%rsp)
	leaq	192(%rdx), %rax
	andq	%r9, %rcx
	movq	%rax, -72(%rsp)
	leaq	(,%r9,8), %rax
	movq	%rcx, -64(%rsp)
	movq	%rax, -112(%rsp)
	vbroadcastsd	%xmm2, %zmm9
	vmovapd	%xmm2, -16(%rsp)
	vmovupd	%zmm9, (%rsp)
	jmp	.LBB0_2
.LBB0_25:
	vmovups	256(%rsp), %zmm1
	cmpq	$1, %r14
	jle	.LBB0_26
.LBB0_2:
	movq	608(%rsp), %rcx
	movq	%r11, %rax
	imulq	%r9, %rax
	movq	%r13, -32(%rsp)
	leaq	(%rcx,%rax,8), %rbx
	xorl	%eax, %eax
.LBB0_3:
	movq	%rax, %rcx
	sarq	$2, %rcx
	movq	%r9, %rdx
	subq	%rcx, %rdx
	vpbroadcastq	%rdx, %zmm25
	vpcmpgtq	%zmm7, %zmm25, %k1
	vmovupd	(%rbx,%rax,2), %zmm26 {%k1} {z}
	vpcmpgtq	%zmm5, %zmm25, %k1
	vmovupd	64(%rbx,%rax,2), %zmm25 {%k1} {z}
	vcvtpd2ps	%zmm26, %ymm26
	vcvtpd2ps	%zmm25, %ymm25
	vinsertf64x4	$1, %ymm25, %zmm26, %zmm25
	vcmpnleps	%zmm1, %zmm25, %k1
	vmovaps	%zmm25, %zmm25 {%k1} {z}
	vmovups	%zmm25, (%rsi,%rax)
	addq	$64, %rax
	cmpq	%rdi, %rax
	jl	.LBB0_3
	movq	384(%rsp), %rdx
	movq	392(%rsp), %rsi
	movq	%r11, %rax
	sarq	$63, %rax
	movq	%rbx, -40(%rsp)
	movq	%r11, %rcx
	movq	%r11, -120(%rsp)
	vxorpd	%xmm22, %xmm22, %xmm22
	vxorps	%xmm27, %xmm27, %xmm27
	movq	%rax, -88(%rsp)
	leaq	(%rdx,%r11,8), %rdx
	andq	%rsi, %rax
	incq	%rcx
	movq	%rcx, -96(%rsp)
	movq	(%rdx,%rax,8), %rbx
	movl	$0, %eax
	cmovlq	%rsi, %rax
	movq	8(%rdx,%rax,8), %rdi
	cmpq	%rdi, %rbx
	jge	.LBB0_6
	movq	552(%rsp), %rdx
	movq	-120(%rsp), %rcx
	movq	-88(%rsp), %rax
	leaq	32(%rbx), %r11
	movq	%rdi, -24(%rsp)
	andq	560(%rsp), %rax
	leaq	(%rdx,%rcx,8), %rdx
	vbroadcastsd	(%rdx,%rax,8), %zmm24
	movq	840(%rsp), %rax
	movq	%rbx, %rdx
	negq	%rdx
	vmovups	(%rax), %zmm28
	vcvtsd2ss	%xmm24, %xmm24, %xmm27
	vbroadcastss	%xmm27, %zmm27
	vmulps	%zmm27, %zmm28, %zmm29
	vxorps	%xmm27, %xmm27, %xmm27
	jmp	.LBB0_35
.LBB0_34:
	addq	$32, %r11
	addq	$-32, %rdx
	cmpq	%rdi, %rbx
	jge	.LBB0_6
.LBB0_35:
	movq	%rbx, %rsi
	cmpq	%r11, %rdi
	leaq	32(%rbx), %rbx
	movq	%r11, %rax
	movq	%rdi, %r12
	cmovlq	%rdi, %rax
	cmpq	%rdi, %rbx
	cmovlq	%rbx, %r12
	cmpq	%r12, %rsi
	jge	.LBB0_34
	movq	1056(%rsp), %r9
	movq	496(%rsp), %rbx
	addq	%rdx, %rax
	movabsq	$.LCPI0_20, %rdi
	movabsq	$.LCPI0_21, %rcx
	movq	%rsi, %r13
	vmovupd	(%r9), %zmm30
	movq	912(%rsp), %r9
.LBB0_37:
	movl	4(%rbp,%r13,4), %r14d
	movl	(%rbp,%r13,4), %r15d
	vmovaps	%ymm11, %ymm26
	vmovaps	%ymm21, %ymm11
	vmovdqa64	%ymm20, %ymm21
	vmovaps	%ymm19, %ymm20
	vmovdqa64	%ymm18, %ymm19
	vmovaps	%ymm17, %ymm18
	vmovaps	%ymm16, %ymm17
	vmovaps	%ymm15, %ymm16
	vmovaps	%ymm14, %ymm15
	vmovaps	%ymm12, %ymm14
	vmovaps	%ymm10, %ymm12
	vmovaps	%ymm8, %ymm10
	vmovaps	%ymm6, %ymm8
	vmovaps	%ymm3, %ymm6
	vmovaps	%ymm13, %ymm3
	vmovaps	%ymm4, %ymm25
	vmovaps	%zmm24, %zmm4
	vpbroadcastq	%rax, %zmm31
	vpcmpgtq	64(%rsp), %zmm31, %k1
	addq	$-8, %rax
	shlq	$6, %r14
	shlq	$6, %r15
	vmovups	(%r14,%r10), %zmm7
	movl	8(%rbp,%r13,4), %r14d
	vmovups	(%r15,%r10), %zmm24
	vmovupd	(%rbx,%r13,8), %zmm31 {%k1} {z}
	shlq	$6, %r14
	vmovups	(%r14,%r10), %zmm9
	movl	12(%rbp,%r13,4), %r14d
	vfmadd213ps	%zmm23, %zmm28, %zmm24
	vfmadd213ps	%zmm23, %zmm28, %zmm7
	shlq	$6, %r14
	vmovups	(%r14,%r10), %zmm22
	movl	16(%rbp,%r13,4), %r14d
	vinsertf64x4	$1, %ymm7, %zmm24, %zmm5
	vshuff64x2	$238, %zmm7, %zmm24, %zmm7
	vmovaps	%zmm4, %zmm24
	vmovaps	%ymm25, %ymm4
	vfmadd213ps	%zmm23, %zmm28, %zmm9
	vaddps	%zmm7, %zmm5, %zmm5
	shlq	$6, %r14
	vmovups	(%r14,%r10), %zmm0
	movl	20(%rbp,%r13,4), %r14d
	vfmadd213ps	%zmm23, %zmm28, %zmm22
	shlq	$6, %r14
	vmovups	(%r14,%r10), %zmm1
	movl	24(%rbp,%r13,4), %r14d
	vinsertf64x4	$1, %ymm22, %zmm9, %zmm7
	vshuff64x2	$238, %zmm22, %zmm9, %zmm9
	vfmadd213ps	%zmm23, %zmm28, %zmm0
	vaddps	%zmm9, %zmm7, %zmm7
	shlq	$6, %r14
	vmovups	(%r14,%r10), %zmm13
	movl	28(%rbp,%r13,4), %r14d
	addq	$8, %r13
	vfmadd213ps	%zmm23, %zmm28, %zmm1
	shlq	$6, %r14
	vmovups	(%r14,%r10), %zmm2
	vinsertf64x4	$1, %ymm1, %zmm0, %zmm9
	vshuff64x2	$238, %zmm1, %zmm0, %zmm0
	vfmadd213ps	%zmm23, %zmm28, %zmm13
	vaddps	%zmm0, %zmm9, %zmm0
	vfmadd213ps	%zmm23, %zmm28, %zmm2
	vinsertf64x4	$1, %ymm2, %zmm13, %zmm1
	vshuff64x2	$238, %zmm2, %zmm13, %zmm2
	vmovaps	%ymm3, %ymm13
	vmovaps	%ymm6, %ymm3
	vmovaps	%ymm8, %ymm6
	vmovaps	%ymm10, %ymm8
	vmovaps	%ymm12, %ymm10
	vmovaps	%ymm14, %ymm12
	vmovaps	%ymm15, %ymm14
	vmovaps	%ymm16, %ymm15
	vmovaps	%ymm17, %ymm16
	vmovaps	%ymm18, %ymm17
	vmovdqa64	%ymm19, %ymm18
	vmovaps	%ymm20, %ymm19
	vmovdqa64	%ymm21, %ymm20
	vmovaps	%ymm11, %ymm21
	vmovaps	%ymm26, %ymm11
	vaddps	%zmm2, %zmm1, %zmm1
	vshuff64x2	$136, %zmm7, %zmm5, %zmm2
	vshuff64x2	$221, %zmm7, %zmm5, %zmm5
	vmovaps	%ymm3, %ymm7
	vaddps	%zmm5, %zmm2, %zmm2
	vshuff64x2	$136, %zmm1, %zmm0, %zmm5
	vshuff64x2	$221, %zmm1, %zmm0, %zmm0
	vaddps	%zmm0, %zmm5, %zmm0
	vunpcklpd	%zmm0, %zmm2, %zmm1
	vunpckhpd	%zmm0, %zmm2, %zmm0
	vaddps	%zmm0, %zmm1, %zmm0
	vextractf64x4	$1, %zmm0, %ymm1
	vhaddps	%ymm1, %ymm0, %ymm0
	vpermps	%ymm0, %ymm16, %ymm0
	vcmpltps	%ymm0, %ymm25, %k1
	vmaxps	%ymm25, %ymm0, %ymm0
	vpaddd	%ymm18, %ymm0, %ymm1
	vpsrad	$23, %ymm1, %ymm2
	vpandd	%ymm20, %ymm1, %ymm1
	vpsubd	%ymm1, %ymm0, %ymm1
	vcvtdq2ps	%ymm2, %ymm2
	vaddps	%ymm1, %ymm13, %ymm1
	vfmadd213ps	%ymm6, %ymm1, %ymm7
	vmulps	%ymm1, %ymm1, %ymm5
	vfmadd213ps	%ymm8, %ymm1, %ymm7
	vfmadd213ps	%ymm10, %ymm1, %ymm7
	vfmadd213ps	%ymm12, %ymm1, %ymm7
	vfmadd213ps	%ymm14, %ymm1, %ymm7
	vfmadd213ps	%ymm15, %ymm1, %ymm7
	vfmadd213ps	%ymm17, %ymm1, %ymm7
	vfmadd213ps	%ymm19, %ymm1, %ymm7
	vmulps	%ymm7, %ymm1, %ymm7
	vmulps	%ymm7, %ymm5, %ymm7
	vfmadd231ps	%ymm21, %ymm2, %ymm7
	vfmadd231ps	%ymm26, %ymm5, %ymm7
	vbroadcastss	(%rcx), %ymm5
	vaddps	%ymm7, %ymm1, %ymm1
	vfmadd231ps	(%rdi){1to8}, %ymm2, %ymm1
	vcvtpd2ps	%zmm31, %ymm2
	vdivps	%ymm0, %ymm2, %ymm0
	vmovaps	%ymm1, %ymm5 {%k1}
	vcvtps2pd	%ymm5, %zmm1
	vmulpd	%zmm31, %zmm24, %zmm5
	vfmadd231pd	%zmm5, %zmm1, %zmm30
	vmovups	%ymm0, (%r9)
	addq	$32, %r9
	cmpq	%r12, %r13
	jl	.LBB0_37
	movq	1056(%rsp), %rax
	movq	-24(%rsp), %rdi
	leaq	32(%rsi), %rbx
	vxorpd	%xmm22, %xmm22, %xmm22
	vmovupd	%zmm30, (%rax)
	movq	912(%rsp), %rax
.LBB0_39:
	movl	(%rbp,%rsi,4), %r15d
	vbroadcastss	(%rax), %zmm0
	movl	8(%rbp,%rsi,4), %r13d
	movl	4(%rbp,%rsi,4), %r9d
	movl	12(%rbp,%rsi,4), %r14d
	vbroadcastss	8(%rax), %zmm2
	vbroadcastss	4(%rax), %zmm1
	vbroadcastss	12(%rax), %zmm5
	addq	$4, %rsi
	addq	$16, %rax
	shlq	$6, %r15
	shlq	$6, %r13
	shlq	$6, %r9
	shlq	$6, %r14
	vmulps	(%r15,%r10), %zmm0, %zmm7
	vfmadd213ps	(%r15,%r8), %zmm29, %zmm0
	vmulps	(%r13,%r10), %zmm2, %zmm9
	vfmadd231ps	(%r9,%r10), %zmm1, %zmm7
	vfmadd231ps	(%r14,%r10), %zmm5, %zmm9
	vmovups	%zmm0, (%r15,%r8)
	vfmadd213ps	(%r9,%r8), %zmm29, %zmm1
	vaddps	%zmm9, %zmm7, %zmm7
	vaddps	%zmm7, %zmm27, %zmm27
	vmovups	%zmm1, (%r9,%r8)
	vfmadd213ps	(%r13,%r8), %zmm29, %zmm2
	vmovups	%zmm2, (%r13,%r8)
	vfmadd213ps	(%r14,%r8), %zmm29, %zmm5
	vmovups	%zmm5, (%r14,%r8)
	cmpq	%r12, %rsi
	jl	.LBB0_39
	jmp	.LBB0_34
.LBB0_6:
	movq	-32(%rsp), %r14
	movq	840(%rsp), %rsi
	movq	704(%rsp), %rdi
	xorl	%ecx, %ecx
	vxorps	%xmm26, %xmm26, %xmm26
	leaq	-1(%r14), %r13
	movq	%rsi, %rax
	vmovups	%zmm27, (%rdi,%rsi)
.LBB0_7:
	vmovups	(%rax), %zmm27
	vmovups	(%rdi,%rax), %zmm28
	addq	$64, %rcx
	vfmadd213ps	(%rax,%rdi,2), %zmm27, %zmm28
	vextractf64x4	$1, %zmm28, %ymm29
	vcvtps2pd	%ymm28, %zmm27
	vmovups	%zmm28, (%rdi,%rax)
	addq	$64, %rax
	vcvtps2pd	%ymm29, %zmm29
	vaddpd	%zmm27, %zmm22, %zmm22
	vaddpd	%zmm29, %zmm26, %zmm26
	cmpq	%rdi, %rcx
	jl	.LBB0_7
	vaddpd	%zmm26, %zmm22, %zmm25
	vmovdqu64	192(%rsp), %zmm5
	vmovdqu64	64(%rsp), %zmm7
	movq	624(%rsp), %r9
	movq	-48(%rsp), %rbx
	movq	-88(%rsp), %r15
	movq	-40(%rsp), %r12
	vxorpd	%xmm0, %xmm0, %xmm0
	vextractf64x4	$1, %zmm25, %ymm26
	vaddpd	%ymm26, %ymm25, %ymm25
	vextractf32x4	$1, %ymm25, %xmm26
	vaddpd	%xmm26, %xmm25, %xmm25
	vshufpd	$1, %xmm25, %xmm25, %xmm26
	vaddsd	%xmm26, %xmm25, %xmm25
	vucomisd	%xmm0, %xmm25
	jbe	.LBB0_11
	vmovsd	-56(%rsp), %xmm0
	movq	-96(%rsp), %r11
	xorl	%eax, %eax
	vdivsd	%xmm25, %xmm0, %xmm25
	vmovupd	128(%rsp), %zmm0
	vbroadcastsd	%xmm25, %zmm25
.LBB0_10:
	vcvtps2pd	32(%rbx,%rax), %zmm26
	vcvtps2pd	(%rbx,%rax), %zmm27
	movq	%rax, %rcx
	sarq	$2, %rcx
	movq	%r9, %rdx
	subq	%rcx, %rdx
	vpbroadcastq	%rdx, %zmm28
	vmulpd	%zmm27, %zmm25, %zmm27
	vmulpd	%zmm26, %zmm25, %zmm26
	vcmpltpd	%zmm26, %zmm0, %k1
	vcmpltpd	%zmm27, %zmm0, %k2
	vmovapd	%zmm27, %zmm27 {%k2} {z}
	vmovapd	%zmm26, %zmm26 {%k1} {z}
	vpcmpgtq	%zmm5, %zmm28, %k2
	vpcmpgtq	%zmm7, %zmm28, %k1
	vmovupd	%zmm26, 64(%r12,%rax,2) {%k2}
	vmovupd	%zmm27, (%r12,%rax,2) {%k1}
	addq	$64, %rax
	cmpq	%rdi, %rax
	jl	.LBB0_10
	jmp	.LBB0_25
.LBB0_11:
	vmovapd	-16(%rsp), %xmm2
	movq	-96(%rsp), %r11
	testq	%r9, %r9
	jle	.LBB0_25
	andq	616(%rsp), %r15
	cmpq	$3, %r9
	ja	.LBB0_16
	xorl	%eax, %eax
	jmp	.LBB0_14
.LBB0_16:
	cmpq	$32, %r9
	jae	.LBB0_18
	xorl	%ecx, %ecx
	jmp	.LBB0_22
.LBB0_18:
	movq	-120(%rsp), %rax
	vmovups	(%rsp), %zmm1
	movq	-104(%rsp), %rdx
	xorl	%ecx, %ecx
	addq	%r15, %rax
	imulq	-112(%rsp), %rax
	addq	-72(%rsp), %rax
.LBB0_19:
	vmovups	%zmm1, -192(%rax,%rcx,8)
	vmovups	%zmm1, -128(%rax,%rcx,8)
	vmovups	%zmm1, -64(%rax,%rcx,8)
	vmovups	%zmm1, (%rax,%rcx,8)
	addq	$32, %rcx
	cmpq	%rcx, %rdx
	jne	.LBB0_19
	cmpq	%rdx, %r9
	je	.LBB0_25
	movq	-104(%rsp), %rcx
	movq	%rcx, %rax
	testb	$28, %r9b
	je	.LBB0_14
.LBB0_22:
	movq	-120(%rsp), %rax
	vmovups	(%rsp), %zmm1
	movq	-64(%rsp), %rdx
	addq	%r15, %rax
	imulq	-112(%rsp), %rax
	addq	608(%rsp), %rax
.LBB0_23:
	vmovups	%ymm1, (%rax,%rcx,8)
	addq	$4, %rcx
	cmpq	%rcx, %rdx
	jne	.LBB0_23
	movq	%rdx, %rax
	cmpq	%rdx, %r9
	je	.LBB0_25
.LBB0_14:
	addq	-120(%rsp), %r15
	imulq	-112(%rsp), %r15
	addq	608(%rsp), %r15
.LBB0_15:
	vmovsd	%xmm2, (%r15,%rax,8)
	incq	%rax
	cmpq	%rax, %r9
	jne	.LBB0_15
	jmp	.LBB0_25
.LBB0_26:
	movq	1064(%rsp), %rsi
	testq	%rsi, %rsi
	jle	.LBB0_27
	movl	%esi, %eax
	andl	$7, %eax
	cmpq	$8, %rsi
	jae	.LBB0_28
	movq	1056(%rsp), %rdx
	vxorpd	%xmm0, %xmm0, %xmm0
	xorl	%ecx, %ecx
	jmp	.LBB0_31
.LBB0_27:
	vxorpd	%xmm0, %xmm0, %xmm0
	jmp	.LBB0_33
.LBB0_28:
	movq	1056(%rsp), %rdx
	movabsq	$9223372036854775776, %rcx
	vxorpd	%xmm0, %xmm0, %xmm0
	orq	$24, %rcx
	andq	%rcx, %rsi
	xorl	%ecx, %ecx
.LBB0_29:
	vaddsd	(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	8(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	16(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	24(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	32(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	40(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	48(%rdx,%rcx,8), %xmm0, %xmm0
	vaddsd	56(%rdx,%rcx,8), %xmm0, %xmm0
	addq	$8, %rcx
	cmpq	%rcx, %rsi
	jne	.LBB0_29
	testq	%rax, %rax
	je	.LBB0_33
.LBB0_31:
	leaq	(%rdx,%rcx,8), %rcx
	xorl	%edx, %edx
.LBB0_32:
	vaddsd	(%rcx,%rdx,8), %xmm0, %xmm0
	incq	%rdx
	cmpq	%rdx, %rax
	jne	.LBB0_32
.LBB0_33:
	movq	-80(%rsp), %rax
	vmovsd	%xmm0, (%rax)
	xorl	%eax, %eax
	addq	$328, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end0:
	.size	_ZN8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE, .Lfunc_end0-_ZN8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE

	.globl	_ZN7cpython8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE
	.type	_ZN7cpython8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE,@function
_ZN7cpython8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	subq	$1032, %rsp
	movq	%rsi, %rdi
	subq	$8, %rsp
	leaq	128(%rsp), %r14
	leaq	136(%rsp), %r11
	leaq	144(%rsp), %r10
	leaq	152(%rsp), %rbp
	leaq	160(%rsp), %r13
	leaq	168(%rsp), %r12
	leaq	176(%rsp), %r15
	movabsq	$".const.make.<locals>.kern", %rsi
	movl	$13, %edx
	movl	$13, %ecx
	movabsq	$PyArg_UnpackTuple, %rbx
	leaq	224(%rsp), %r8
	leaq	216(%rsp), %r9
	xorl	%eax, %eax
	pushq	%r14
	pushq	%r11
	pushq	%r10
	pushq	%rbp
	pushq	%r13
	pushq	%r12
	pushq	%r15
	leaq	240(%rsp), %r10
	pushq	%r10
	leaq	256(%rsp), %r10
	pushq	%r10
	leaq	272(%rsp), %r10
	pushq	%r10
	leaq	288(%rsp), %r10
	pushq	%r10
	callq	*%rbx
	addq	$96, %rsp
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 304(%rsp)
	movq	$0, 368(%rsp)
	vmovups	%zmm0, 672(%rsp)
	movq	$0, 736(%rsp)
	vmovups	%zmm0, 592(%rsp)
	movq	$0, 656(%rsp)
	vmovups	%zmm0, 512(%rsp)
	vmovups	%zmm0, 960(%rsp)
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 240(%rsp)
	movq	$0, 576(%rsp)
	movq	$0, 1024(%rsp)
	vmovups	%ymm0, 264(%rsp)
	movq	$0, 16(%rsp)
	testl	%eax, %eax
	je	.LBB1_1
	movabsq	$_ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE, %rax
	cmpq	$0, (%rax)
	je	.LBB1_4
	movq	216(%rsp), %rdi
	movabsq	$numba_adapt_ndarray, %rbp
	leaq	448(%rsp), %rsi
	vmovups	%ymm0, 448(%rsp)
	vmovups	%ymm0, 472(%rsp)
	vzeroupper
	callq	*%rbp
	testl	%eax, %eax
	jne	.LBB1_8
	cmpq	$8, 472(%rsp)
	jne	.LBB1_8
	movq	208(%rsp), %rdi
	movq	480(%rsp), %r14
	movq	488(%rsp), %r15
	leaq	896(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 896(%rsp)
	vmovups	%ymm0, 920(%rsp)
	vzeroupper
	callq	*%rbp
	testl	%eax, %eax
	jne	.LBB1_8
	cmpq	$4, 920(%rsp)
	jne	.LBB1_8
	movq	200(%rsp), %rdi
	movq	928(%rsp), %r12
	leaq	832(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 832(%rsp)
	vmovups	%ymm0, 856(%rsp)
	vzeroupper
	callq	*%rbp
	testl	%eax, %eax
	jne	.LBB1_8
	cmpq	$8, 856(%rsp)
	jne	.LBB1_8
	movq	192(%rsp), %rdi
	movq	864(%rsp), %r13
	leaq	384(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 384(%rsp)
	vmovups	%ymm0, 408(%rsp)
	vzeroupper
	callq	*%rbp
	testl	%eax, %eax
	jne	.LBB1_8
	cmpq	$8, 408(%rsp)
	jne	.LBB1_8
	movq	416(%rsp), %rax
	movq	184(%rsp), %rdi
	leaq	752(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 752(%rsp)
	movq	$0, 816(%rsp)
	movq	%rax, 8(%rsp)
	movq	424(%rsp), %rax
	movq	%rax, 112(%rsp)
	vzeroupper
	callq	*%rbp
	cmpq	$8, 776(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bl
	orb	%cl, %bl
	cmpb	$1, %bl
	je	.LBB1_16
	testb	%bl, %bl
	jne	.LBB1_1
.LBB1_18:
	movq	784(%rsp), %rax
	movq	792(%rsp), %rcx
	movq	176(%rsp), %rdi
	leaq	304(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 304(%rsp)
	movq	$0, 368(%rsp)
	movq	%rax, 104(%rsp)
	movq	800(%rsp), %rax
	movq	%rcx, 96(%rsp)
	movq	%rax, 88(%rsp)
	vzeroupper
	callq	*%rbp
	cmpq	$4, 328(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bl
	orb	%cl, %bl
	cmpb	$1, %bl
	je	.LBB1_19
	testb	%bl, %bl
	jne	.LBB1_1
.LBB1_21:
	movq	336(%rsp), %rax
	movq	168(%rsp), %rdi
	leaq	672(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 672(%rsp)
	movq	$0, 736(%rsp)
	movq	%rax, 80(%rsp)
	movq	360(%rsp), %rax
	movq	%rax, 72(%rsp)
	vzeroupper
	callq	*%rbp
	cmpq	$4, 696(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bl
	orb	%cl, %bl
	cmpb	$1, %bl
	je	.LBB1_22
	testb	%bl, %bl
	jne	.LBB1_1
.LBB1_24:
	movq	160(%rsp), %rdi
	movq	704(%rsp), %rbx
	movq	%r15, 56(%rsp)
	movabsq	$PyNumber_Long, %r15
	movq	%r13, 40(%rsp)
	movq	%r12, 48(%rsp)
	movq	%r14, 64(%rsp)
	callq	*%r15
	movabsq	$PyLong_AsLongLong, %r13
	movabsq	$Py_DecRef, %r12
	movq	%rbx, 32(%rsp)
	testq	%rax, %rax
	je	.LBB1_25
	movq	%rax, %rdi
	movq	%rax, %r14
	callq	*%r13
	movq	%r14, %rdi
	movq	%rax, 24(%rsp)
	callq	*%r12
	movabsq	$PyErr_Occurred, %rbx
	callq	*%rbx
	testq	%rax, %rax
	jne	.LBB1_1
.LBB1_28:
	movq	152(%rsp), %rdi
	callq	*%r15
	testq	%rax, %rax
	je	.LBB1_29
	movq	%rax, %rdi
	movq	%rax, %r15
	callq	*%r13
	movq	%r15, %rdi
	movq	%rax, %r14
	callq	*%r12
	callq	*%rbx
	testq	%rax, %rax
	jne	.LBB1_1
.LBB1_32:
	movq	144(%rsp), %rdi
	leaq	592(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 592(%rsp)
	movq	$0, 656(%rsp)
	vzeroupper
	callq	*%rbp
	cmpq	$4, 616(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bl
	orb	%cl, %bl
	cmpb	$1, %bl
	je	.LBB1_33
	testb	%bl, %bl
	jne	.LBB1_1
.LBB1_35:
	movq	136(%rsp), %rdi
	movq	624(%rsp), %r12
	leaq	512(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 512(%rsp)
	movq	$0, 576(%rsp)
	vzeroupper
	callq	*%rbp
	cmpq	$4, 536(%rsp)
	setne	%cl
	testl	%eax, %eax
	setne	%bl
	orb	%cl, %bl
	cmpb	$1, %bl
	je	.LBB1_36
	testb	%bl, %bl
	jne	.LBB1_1
.LBB1_38:
	movq	128(%rsp), %rdi
	movq	544(%rsp), %r13
	leaq	960(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%zmm0, 960(%rsp)
	movq	$0, 1024(%rsp)
	vzeroupper
	callq	*%rbp
	testl	%eax, %eax
	jne	.LBB1_8
	cmpq	$8, 984(%rsp)
	jne	.LBB1_8
	movq	120(%rsp), %rdi
	leaq	240(%rsp), %rsi
	vxorps	%xmm0, %xmm0, %xmm0
	vmovups	%ymm0, 240(%rsp)
	vmovups	%ymm0, 264(%rsp)
	vzeroupper
	callq	*%rbp
	testl	%eax, %eax
	jne	.LBB1_8
	cmpq	$8, 264(%rsp)
	jne	.LBB1_8
	vmovaps	272(%rsp), %xmm0
	movabsq	$PyEval_SaveThread, %rax
	vmovaps	%xmm0, 224(%rsp)
	callq	*%rax
	movq	%rax, %r15
	movq	$0, 16(%rsp)
	subq	$704, %rsp
	vmovaps	928(%rsp), %xmm0
	vmovups	%xmm0, 672(%rsp)
	movq	%r13, 528(%rsp)
	movq	%r12, 456(%rsp)
	movq	%r14, 416(%rsp)
	movq	$4, 288(%rsp)
	movq	776(%rsp), %rdi
	movq	736(%rsp), %r10
	movq	728(%rsp), %rax
	movq	%rdi, 320(%rsp)
	movq	792(%rsp), %rdi
	movq	%r10, 368(%rsp)
	movq	784(%rsp), %r10
	movq	%rax, 408(%rsp)
	movabsq	$_ZN8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE, %rax
	movq	%rdi, 240(%rsp)
	movq	808(%rsp), %rdi
	movq	%r10, 296(%rsp)
	movq	800(%rsp), %r10
	movq	%rdi, 224(%rsp)
	movq	712(%rsp), %rdi
	movq	%r10, 232(%rsp)
	movq	816(%rsp), %r10
	movq	%rdi, 168(%rsp)
	movq	752(%rsp), %rdi
	movq	%r10, 176(%rsp)
	movq	744(%rsp), %r10
	movq	%rdi, 56(%rsp)
	movq	768(%rsp), %rdi
	movq	%r10, 112(%rsp)
	movq	760(%rsp), %r10
	movq	%rdi, (%rsp)
	leaq	720(%rsp), %rdi
	movq	%r10, 8(%rsp)
	callq	*%rax
	addq	$704, %rsp
	vmovsd	16(%rsp), %xmm0
	movabsq	$PyEval_RestoreThread, %rax
	movq	%r15, %rdi
	vmovsd	%xmm0, 8(%rsp)
	callq	*%rax
	vmovsd	8(%rsp), %xmm0
	movabsq	$PyFloat_FromDouble, %rax
	callq	*%rax
.LBB1_2:
	addq	$1032, %rsp
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.LBB1_8:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
.LBB1_5:
	movabsq	$PyErr_SetString, %rax
	vzeroupper
	callq	*%rax
.LBB1_1:
	xorl	%eax, %eax
	jmp	.LBB1_2
.LBB1_4:
	movabsq	$PyExc_RuntimeError, %rdi
	movabsq	$".const.missing Environment: _ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE", %rsi
	jmp	.LBB1_5
.LBB1_16:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bl, %bl
	je	.LBB1_18
	jmp	.LBB1_1
.LBB1_19:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bl, %bl
	je	.LBB1_21
	jmp	.LBB1_1
.LBB1_22:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bl, %bl
	je	.LBB1_24
	jmp	.LBB1_1
.LBB1_25:
	movq	$0, 24(%rsp)
	movabsq	$PyErr_Occurred, %rbx
	callq	*%rbx
	testq	%rax, %rax
	je	.LBB1_28
	jmp	.LBB1_1
.LBB1_29:
	xorl	%r14d, %r14d
	callq	*%rbx
	testq	%rax, %rax
	je	.LBB1_32
	jmp	.LBB1_1
.LBB1_33:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bl, %bl
	je	.LBB1_35
	jmp	.LBB1_1
.LBB1_36:
	movabsq	$PyExc_TypeError, %rdi
	movabsq	$".const.can't unbox array from PyObject into native value.  The object maybe of a different type", %rsi
	movabsq	$PyErr_SetString, %rax
	callq	*%rax
	testb	%bl, %bl
	je	.LBB1_38
	jmp	.LBB1_1
.Lfunc_end1:
	.size	_ZN7cpython8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE, .Lfunc_end1-_ZN7cpython8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE

	.type	".const.make.<locals>.kern",@object
	.section	.lrodata,"al",@progbits
".const.make.<locals>.kern":
	.asciz	"make.<locals>.kern"
	.size	".const.make.<locals>.kern", 19

	.type	_ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE,@object
	.comm	_ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE,8,8
	.type	".const.missing Environment: _ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE",@object
".const.missing Environment: _ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE":
	.asciz	"missing Environment: _ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE"
	.size	".const.missing Environment: _ZN08NumbaEnv8variant24make12_3clocals_3e4kernB2v1B54c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsBAQ4s_2fqEqkpAMW0QQAE5ArrayIxLi1E1C7mutable7alignedE5ArrayIiLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE5ArrayIdLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedExx5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE5ArrayIxLi2E1C7mutable7alignedE5ArrayIdLi1E1C7mutable7alignedE", 473

	.type	".const.can't unbox array from PyObject into native value.  The object maybe of a different type",@object
".const.can't unbox array from PyObject into native value.  The object maybe of a different type":
	.asciz	"can't unbox array from PyObject into native value.  The object maybe of a different type"
	.size	".const.can't unbox array from PyObject into native value.  The object maybe of a different type", 89

	.type	_ZN08NumbaEnv7swiftem6engine5numba20plsa_document_passes6limitsB2v2B76c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAQUQzVBF6jCIJQxIPkgBqgoBKICU7sIgmAA_3d_3dE5ArrayIfLi2E1C7mutable7alignedE,@object
	.comm	_ZN08NumbaEnv7swiftem6engine5numba20plsa_document_passes6limitsB2v2B76c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAQUQzVBF6jCIJQxIPkgBqgoBKICU7sIgmAA_3d_3dE5ArrayIfLi2E1C7mutable7alignedE,8,8
	.type	_ZN08NumbaEnv7swiftem6engine5numba20plsa_document_passes5renewB2v3B76c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAQUQzVBF6jCIJQxIPkgBqgoBKICU7sIgmAA_3d_3dE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE23Literal_5bint_5d_280_29d5ArrayIdLi2E1C7mutable7alignedEx,@object
	.comm	_ZN08NumbaEnv7swiftem6engine5numba20plsa_document_passes5renewB2v3B76c8tJTIeFIjxB2IKSgI4CrvQCk0Z4yRYcWsCAQUQzVBF6jCIJQxIPkgBqgoBKICU7sIgmAA_3d_3dE5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi2E1C7mutable7alignedE23Literal_5bint_5d_280_29d5ArrayIdLi2E1C7mutable7alignedEx,8,8
	.section	".note.GNU-stack","",@progbits
